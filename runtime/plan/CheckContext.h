//===- CheckContext.h - What the parts of checkPlan share -------*- C++ -*-===//
#pragma once

#include "runtime/plan/Extents.h"
#include "runtime/plan/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fsdpq::rt {

/// Wide enough for offset + stride * index and rows * pitch * size.
using Wide = __int128;

/// How many values the index of each nesting level can take at most: [0] is
/// the function's argument (0: it takes none), [k] the k-th loop around.
using IndexCounts = std::vector<int64_t>;

/// A plan while it is checked. All throw Error 30xx, naming the subject.
class CheckContext {
public:
  CheckContext(const plan::Plan &plan, size_t bodyBytes,
               const std::string &where)
      : plan(plan), sharedBudget(bodyBytes), where(where) {}

  const plan::Plan &plan;
  /// What is being checked, for messages.
  std::string subject;
  /// Per slice: the power of two (at most 256, an arena's alignment) that all
  /// its addresses are multiples of.
  std::vector<int64_t> alignment;

  [[noreturn]] void fail(int id, const std::string &message) const;

  /// Counts bytes of vectors as they are scanned. Vectors that share storage
  /// would let a small file ask for unbounded work.
  void spend(uint64_t bytes);

  /// FlatBuffers' verifier checks the alignment of a vector's length only.
  template <typename T>
  void checkAlignment(const flatbuffers::Vector<T> &vector) const {
    // A vector of structs holds them, and its entries are pointers to them.
    constexpr size_t alignment = alignof(std::remove_pointer_t<T>);
    if (reinterpret_cast<uintptr_t>(vector.Data()) % alignment != 0)
      fail(3022, "a table is not aligned to its entries");
  }

  void checkName(std::string_view name, const std::string &what) const;

  template <typename Tables, typename GetName>
  void checkNames(const Tables &tables, const std::string &what, bool unique,
                  GetName getName) const {
    std::set<std::string_view> seen;
    for (uint32_t i = 0; i < tables.size(); ++i) {
      std::string_view name = getName(*tables.Get(i)).string_view();
      checkName(name, what + " " + std::to_string(i));
      if (unique && !seen.insert(name).second)
        fail(3010, "two of the plan's " + what + "s are named '" +
                       std::string(name) + "'");
    }
  }

  /// "slice 3 'x'".
  std::string sliceText(uint32_t number) const;

  /// The slice stays in its arena when moved by `shift`, which `index` does.
  void checkInArena(const plan::Slice &slice, Wide shift, int64_t index) const;

  /// A slice used as `role`: it exists, its index does, and for all values of
  /// it the slice stays in its arena and its ordinal is known.
  const plan::Slice &checkSliceUse(uint32_t number, const std::string &role,
                                   const IndexCounts &counts) const;

  /// The bounds of an extent used as `role`.
  ExtentRange checkExtent(const plan::Extent &extent, const std::string &role,
                          const IndexCounts &counts) const;

  /// The greatest value of an extent that counts something.
  int64_t checkCount(const plan::Extent &extent, const std::string &role,
                     const IndexCounts &counts) const;

private:
  int64_t indexCount(uint32_t level, const IndexCounts &counts,
                     const std::string &user) const;

  uint64_t sharedBudget;
  const std::string &where;
};

inline std::string quoted(const flatbuffers::String *name) {
  return "'" + name->str() + "'";
}

/// Negative numbers become invalid ones, so that one test finds both.
inline uint32_t toIndex(int32_t number) {
  return number < 0 ? UINT32_MAX : static_cast<uint32_t>(number);
}

/// Checks the kernels: how cubins are started.
void checkKernels(CheckContext &context);

/// A launch of at most `items` work items, whose arguments were checked, fits how
/// its kernel is started.
void checkLaunchShape(const CheckContext &context, const plan::Launch &launch,
                      int64_t items);

/// Checks the functions: loops, instructions, what they touch at capacity.
void checkFunctions(CheckContext &context);

/// Checks the units, parameters and loaders.
void checkUnits(CheckContext &context);

} // namespace fsdpq::rt
