// RUN: not %opt %s --tfm-quantize-params=scheme=f16 2>&1 | FileCheck %s --check-prefix=FLOAT
// RUN: not %opt %s --tfm-quantize-params=scheme=nf4 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not %opt %s --tfm-quantize-params='scheme="!qt.nf4<block = 3, scale = f32>"' 2>&1 | FileCheck %s --check-prefix=BLOCK
// FLOAT: [FSDPQ-0150] 'f16' is no qt type
// TEXT: [FSDPQ-0150] 'nf4' is no qt type
// BLOCK: block must be a power of two from 2 to 4096, got 3
// BLOCK: [FSDPQ-0150] '!qt.nf4<block = 3, scale = f32>' is no qt type

tfm.architecture @m {
}
