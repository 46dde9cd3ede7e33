// RUN: %opt %s --split-input-file --verify-diagnostics "--exec-serialize=output=%t.missing/plan kernels=false"
// RUN: not %opt %s --split-input-file "--exec-serialize=kernels=false" 2>&1 | FileCheck %s --check-prefix=NO-OUTPUT

// A folder that is not there. Without an output file nothing is tried.

// NO-OUTPUT-COUNT-3: error: [FSDPQ-0601] exec-serialize needs an output file and a module with one exec.plan

// expected-error-re@below {{[FSDPQ-0602] cannot write '{{.*}}.missing/plan': No such file or directory}}
module {
  exec.plan @p {
  }
}

// -----

// expected-error@below {{[FSDPQ-0601] exec-serialize needs an output file and a module with one exec.plan}}
module {
}

// -----

// expected-error@below {{[FSDPQ-0601] exec-serialize needs an output file and a module with one exec.plan}}
module {
  exec.plan @p {
  }
  exec.plan @q {
  }
}
