//===- Fiber.h - Stacks that one thread switches between --------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace fsdpq::test {

/// Where a flow of control stopped. Blocks of 1024 threads switch at every
/// barrier, so on x86-64 a switch makes no system call.
class Fiber {
public:
  /// Makes the next switch to this fiber begin `entry` on the stack
  /// [stack, stack + bytes). `entry` must not return; what ran before is dropped.
  void start(void *stack, size_t bytes, void (*entry)());

  /// Stores the running flow in `from` and goes on with `to`.
  static void switchTo(Fiber &from, Fiber &to);

private:
#if defined(__x86_64__)
  void *stackPointer = nullptr;
#else
  ucontext_t context;
#endif
};

#if defined(__x86_64__)

/// Pushes the registers that a call preserves, stores the stack pointer in *from,
/// and pops those of `to`.
extern "C" void fsdpqSwitchStack(void **from, void *to);

inline void Fiber::start(void *stack, size_t bytes, void (*entry)()) {
  auto *top = reinterpret_cast<uint64_t *>(static_cast<char *>(stack) + bytes);
  *--top = 0; // the address that `entry` would return to
  *--top = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < 6; ++i)
    *--top = 0;
  stackPointer = top;
}

inline void Fiber::switchTo(Fiber &from, Fiber &to) {
  fsdpqSwitchStack(&from.stackPointer, to.stackPointer);
}

#else

inline void Fiber::start(void *stack, size_t bytes, void (*entry)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}

inline void Fiber::switchTo(Fiber &from, Fiber &to) {
  swapcontext(&from.context, &to.context);
}

#endif

} // namespace fsdpq::test
