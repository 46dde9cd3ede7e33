// RUN: not %opt %s --exec-schedule-overlap=depth=2 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: [FSDPQ-0520] depth = 2: 0 or 1 is supported
// RUN: not %opt %s --exec-schedule-overlap=depth=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: [FSDPQ-0520] depth = -1: 0 or 1 is supported

exec.plan @p {
}
