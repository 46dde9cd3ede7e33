//===- Hardware.h - A machine, described for estimates ----------*- C++ -*-===//
//
// A description is a JSON object. Rates are in FLOP/s or bytes/s, times in s,
// sizes in bytes. Rates are positive, times not negative.
//
//   {
//     "name": "8 x H200, NVLink",
//     "source": "where the numbers are from",
//     "devices_per_node": 8,
//     "memory_bytes": 150754820096,
//     "memory_bandwidth": 4.3e12,
//     "launch_overhead": 3e-6,
//     "collective_overhead": 35e-6,
//     "matmul_flops": {"f32": 6.7e13, "f64": 6.7e13, "bf16": 7.9e14},
//     "kernel_flops": 4e14,
//     "links": {
//       "intra_node": {"latency": 5e-6, "bandwidth": 2.7e11},
//       "inter_node": {"latency": 1e-5, "bandwidth": 5e10}
//     },
//     "efficiency": {"matmul": 0.87, "kernel": 1, "memory": 0.9, "link": 1}
//   }
//
// memory_bytes is that of one device; memory_bandwidth counts what is read and
// what is written. collective_overhead is that of a collective, launch_overhead
// of every other instruction. kernel_flops is for launches that say what they
// compute. A link is that of one rank, in one direction. Efficiencies, in
// (0, 1], are multiplied into the rates.
// Optional: source; types in matmul_flops that no plan needs; inter_node; the
// efficiencies (1).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fsdpq::rt {

/// A link as one rank sees it.
struct Link {
  double latency;   ///< s, of one message
  double bandwidth; ///< bytes/s that a rank sends while it receives as many
};

struct Hardware {
  std::string name, source;
  uint32_t devicesPerNode;
  uint64_t memoryBytes;
  // The efficiencies are multiplied into the rates.
  double memoryBandwidth;    ///< bytes/s, read and written together
  double launchOverhead;     ///< s
  double collectiveOverhead; ///< s
  std::array<double, 3> matmulFlops; ///< by plan::DType, FLOP/s; 0: not given
  double kernelFlops;                ///< FLOP/s
  Link intraNode;
  std::optional<Link> interNode;
};

/// Reads a description. Throws Error (BadInput) 120x (see Json.h) for text that
/// is no JSON and for fields that are missing or of another type, 3040 for a
/// number out of range, 3041 for an unknown field; `where` names the text.
Hardware parseHardware(std::string_view text, const std::string &where);

/// Also throws Error 1301, 1302 when the file cannot be read.
Hardware readHardware(const std::string &path);

/// What parseHardware() reads as the same.
std::string hardwareText(const Hardware &hardware);

} // namespace fsdpq::rt
