// RUN: not %opt %s --tfm-set-precision="storage=fp8" 2>&1 | FileCheck %s
// CHECK: [FSDPQ-0162] storage = 'fp8'; known: f32, bf16
