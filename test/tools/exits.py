"""Runs a command and checks how it ends.

usage: exits.py CODE COMMAND [WORD]...

Both of its output streams go to the standard output, for FileCheck.
"""
import subprocess
import sys

code, *command = sys.argv[1:]
# The signals that the caller ignores stay ignored.
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, restore_signals=False)
sys.stdout.buffer.write(done.stdout)
sys.stdout.flush()
if done.returncode != int(code):
    sys.exit(f"{command[0]} ended with {done.returncode}, expected {code}")
