// RUN: echo '{"name": "m", "devices_per_node": 2, "memory_bytes": 1000000000, "memory_bandwidth": 1e10, "launch_overhead": 0, "collective_overhead": 0, "matmul_flops": {"f32": 1e12}, "kernel_flops": 1e12, "links": {"intra_node": {"latency": 0, "bandwidth": 1e9}, "inter_node": {"latency": 0, "bandwidth": 1e9}}, "efficiency": {"matmul": 1, "memory": 1}}' > %t.json
// RUN: %opt %s --exec-report-overlap=hardware=%t.json --remarks-filter='fsdpq.*' --remark-format=emitRemark -o %t.after 2>&1 | FileCheck %s
// RUN: %opt %s | diff - %t.after

// Ten GB a second in memory and one between two ranks: to gather 1 MB from the other
// one takes a millisecond, and so do a sum of 1 MB and a copy of 5 MB. The first
// gather has nothing beside it, the second a copy of 6 MB, the sum one of 2.5 MB.
// Loading is not reported.
// CHECK: remark: [Missed] overlap | Category:fsdpq | Remark="all_gather u ({{.*}}): 0.0 us hidden, 1.00 ms exposed", calls=1
// CHECK: remark: [Passed] overlap | Category:fsdpq | Remark="all_gather u ({{.*}}): 1.00 ms hidden, 0.0 us exposed", calls=1
// CHECK: remark: [Missed] overlap | Category:fsdpq | Remark="all_reduce s ({{.*}}): 500.0 us hidden, 500.0 us exposed", calls=1
// CHECK-NOT: remark
exec.plan @p {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 2000000 : i64}
  exec.arena @activations {bytes = 17000000 : i64}
  exec.unit @u in @base[0] bytes = 2000000 {layers = array<i32: 0, 1>}
  exec.func @run {
    %u0 = exec.slice "u" of @base[0] bytes = 1000000
    %u1 = exec.slice "u" of @base[1000000] bytes = 1000000
    %a = exec.slice "a" of @activations[0] bytes = 2000000
    %b = exec.slice "b" of @activations[2000000] bytes = 2000000
    %s = exec.slice "s" of @activations[4000000] bytes = 1000000
    %x = exec.slice "x" of @activations[5000000] bytes = 6000000
    %y = exec.slice "y" of @activations[11000000] bytes = 6000000
    exec.record 3 stream = 0
    exec.wait 3 stream = 1
    exec.all_gather %u0 to %a bytes = 1000000 {event = 0 : i64, group = "shard"} stream = 1
    exec.record 0 stream = 1
    exec.wait 0 stream = 0
    exec.record 4 stream = 0
    exec.wait 4 stream = 1
    exec.all_gather %u1 to %b bytes = 1000000 {event = 1 : i64, group = "shard"} stream = 1
    exec.record 1 stream = 1
    exec.copy %x to %y bytes = #kern.extent<add = 6000000, cap = 6000000> stream = 0
    exec.wait 1 stream = 0
    exec.record 5 stream = 0
    exec.wait 5 stream = 2
    exec.all_reduce %s elements = 250000 f32 {event = 2 : i64, group = "shard"} stream = 2
    exec.record 2 stream = 2
    exec.copy %x to %y bytes = #kern.extent<add = 2500000, cap = 2500000> stream = 0
    exec.wait 2 stream = 0
  }
  exec.func @load.store.u {
    %s = exec.slice "s" of @activations[4000000] bytes = 1000000
    exec.record 1 stream = 0
    exec.wait 1 stream = 2
    exec.all_reduce %s elements = 250000 f32 {event = 0 : i64, group = "shard"} stream = 2
    exec.record 0 stream = 2
    exec.wait 0 stream = 0
  }
}
