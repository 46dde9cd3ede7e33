// A pass built outside of fsdpq sees fsdpq's operations: the dialects are one
// shared library, so both mean the same types.
// RUN: fsdpq-opt %models/llama.mlir --load-pass-plugin=%plugin_dir/libCountLinears.so \
// RUN:   --pass-pipeline="builtin.module(count-linears)" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: @block has 7 linear layers
