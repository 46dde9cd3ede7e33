// RUN: not %opt %s --tfm-chunk-loss=rows=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not %opt %s --tfm-chunk-loss=rows=200 2>&1 | FileCheck %s --check-prefix=ODD
// ZERO: [FSDPQ-0211] rows = 0: a positive multiple of 128 is needed
// ODD: [FSDPQ-0211] rows = 200: a positive multiple of 128 is needed

tfm.architecture @m {
}
