// RUN: not %opt %s --tfm-insert-optimizer=options=beta1 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not %opt %s --tfm-insert-optimizer=options=beta1=big 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not %opt %s --tfm-insert-optimizer=options==1 2>&1 | FileCheck %s --check-prefix=NAME
// What is wrong with a rule the operation's verifier says.
// RUN: not %opt %s --tfm-insert-optimizer=rule=lion 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not %opt %s --tfm-insert-optimizer=rule=adam 2>&1 | FileCheck %s --check-prefix=MISSING
// FORM: [FSDPQ-0220] the optimizer option 'beta1' is not name=number
// NUMBER: [FSDPQ-0220] the optimizer option 'beta1=big' is not name=number
// NAME: [FSDPQ-0220] the optimizer option '=1' is not name=number
// RULE: has rule "lion"; known are adamw, adam, sgd, adadelta
// MISSING: needs the number "beta1" in its options

tfm.architecture @m {
  tfm.param @a : tensor<64xf32> {hf = "a", trainable}
}
