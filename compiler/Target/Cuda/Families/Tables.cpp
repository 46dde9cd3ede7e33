//===- Tables.cpp - Constant arrays of a text -----------------------------===//

#include "compiler/Target/Cuda/Families/Tables.h"

#include "compiler/Target/Cuda/Families/Scalars.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

std::string Tables::get(DenseElementsAttr entries) {
  auto [place, isNew] = shared.insert({entries, ""});
  if (isNew)
    place->second = "table" + std::to_string(shared.size() - 1);
  return place->second;
}

std::string Tables::getGlobal(DenseElementsAttr entries) {
  auto [place, isNew] = global.insert({entries, ""});
  if (isNew)
    place->second = "constant" + std::to_string(global.size() - 1);
  return place->second;
}

static void printArray(raw_ostream &os, DenseElementsAttr entries,
                       const Twine &name) {
  Type type = entries.getElementType();
  os << "__device__ const " << getTypeName(type) << " " << name << "["
     << entries.getNumElements() << "] = {";
  for (auto [index, entry] : llvm::enumerate(entries.getValues<TypedAttr>()))
    os << (index == 0 ? "" : ",") << (index % 8 == 0 ? "\n  " : " ")
       << cuda::getLiteral(entry);
  os << "};\n";
}

std::string Tables::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto &[entries, name] : global) {
    os << "\n";
    printArray(os, cast<DenseElementsAttr>(entries), name);
  }
  for (auto &[attribute, name] : shared) {
    auto entries = cast<DenseElementsAttr>(attribute);
    os << "\n";
    printArray(os, entries, name + "_entries");
    os << "__shared__ " << getTypeName(entries.getElementType()) << " " << name
       << "[" << entries.getNumElements() << "];\n";
  }
  return text;
}

void Tables::fill(Text &text) const {
  for (auto &[attribute, name] : shared) {
    auto entries = cast<DenseElementsAttr>(attribute);
    text.line("for (int i = threadIdx.x; i < " +
              Twine(entries.getNumElements()) + "; i += blockDim.x)");
    text.line("  " + name + "[i] = " + name + "_entries[i];");
  }
  text.line("__syncthreads();");
}
