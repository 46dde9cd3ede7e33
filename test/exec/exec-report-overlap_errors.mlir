// RUN: not %opt %s --exec-report-overlap=hardware=%t.missing.json 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: [FSDPQ-0603] {{.*}}opening failed: No such file or directory
// RUN: not %opt %s --exec-report-overlap 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: [FSDPQ-0604] exec-report-overlap needs the description of a machine: hardware=FILE
// RUN: echo '{"name": "m"}' > %t.json
// RUN: not %opt %s --exec-report-overlap=hardware=%t.json 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: error: [FSDPQ-0603] {{.*}}[FSDPQ-1204]: "devices_per_node" is missing

exec.plan @p {
}
