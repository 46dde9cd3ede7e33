// RUN: not %opt %s --tfm-plan-residuals=mode=half 2>&1 | FileCheck %s
// CHECK: [FSDPQ-0210] mode = 'half'; known: none, cheap, block

tfm.architecture @m {
}
