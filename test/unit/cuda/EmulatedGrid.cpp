//===- EmulatedGrid.cpp - Threads as fibers, warps that exchange values ---===//

#include "test/unit/cuda/EmulatedGrid.h"

#include "test/unit/cuda/Fiber.h"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

using namespace fsdpq;
using namespace fsdpq::test;

#if defined(__x86_64__)
asm(R"(
.text
.globl fsdpqSwitchStack
.hidden fsdpqSwitchStack
.type fsdpqSwitchStack, @function
fsdpqSwitchStack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size fsdpqSwitchStack, .-fsdpqSwitchStack
)");
#endif

namespace {

constexpr unsigned warpSize = 32, maxThreads = 1024, copyBytes = 16;
constexpr size_t stackBytes = 128 << 10;

enum class State {
  Ready,
  Barrier,
  SyncWarp,
  Shuffle,
  Ballot,
  LoadMatrices,
  Multiply,
  Ended,
};

const char *describe(State state) {
  switch (state) {
  case State::Ready:
    return "can run";
  case State::Barrier:
    return "at __syncthreads";
  case State::SyncWarp:
    return "at __syncwarp";
  case State::Shuffle:
    return "at a shuffle";
  case State::Ballot:
    return "at a vote";
  case State::LoadMatrices:
    return "at ldmatrix";
  case State::Multiply:
    return "at mma";
  case State::Ended:
    return "ended";
  }
  return "";
}

std::string withMask(unsigned mask) {
  char text[32];
  std::snprintf(text, sizeof text, " with mask 0x%x", mask);
  return text;
}

struct Copy {
  void *to;
  const void *from; ///< null: zeros
  unsigned group;
};

struct Thread {
  Fiber fiber;
  State state;

  // What it brings to the warp operation that it waits at, and takes from it.
  unsigned mask, source, count;
  bool predicate, transposed;
  uint64_t value;
  const void *row;
  unsigned *fragments;
  float *c;
  const unsigned *a, *b;

  std::vector<Copy> copies; ///< not yet performed, in order
  unsigned group;           ///< number of the group not yet committed
};

float floatOfBf16(unsigned bits) {
  return std::bit_cast<float>((bits & 0xffff) << 16);
}

class Run {
public:
  explicit Run(const EmulatedGrid &grid)
      : grid(grid), image(grid.image), threads(grid.threads),
        garbage(grid.descending ? 0x7f : 0xff) {}

  std::string all();

  // The services; called by the current thread.
  /// Ends the launch with what `text()` gives. This stack is left for ever, so
  /// nothing on it may own memory.
  template <typename Text>
  [[noreturn]] void fail(Text text) {
    error = "thread " + std::to_string(current) + " of block " +
            std::to_string(*image.blockIndex) + ": " + std::string(text());
    suspend();
    __builtin_unreachable(); // block() leaves when there is an error
  }
  unsigned barrier(bool predicate);
  void warpOperation(State kind, unsigned mask);
  void checkShared(const void *address, const char *user);
  void waitForCopies(unsigned pending);
  void poison(void *begin, size_t bytes) const { std::memset(begin, garbage, bytes); }

  Thread &thread() { return threads[current]; }
  unsigned lane() const { return current % warpSize; }

  void runThread();
  [[noreturn]] void fault(int signal, const void *address) {
    fail([&] { return describeFault(signal, reinterpret_cast<uint64_t>(address)); });
  }

private:
  Thread *warp() { return &threads[current - lane()]; }
  unsigned lanesOfWarp() const {
    return std::min(warpSize, grid.threads - (current - lane()));
  }

  void block(unsigned index);
  bool runReadyLanes(unsigned warpBegin);
  void suspend() { Fiber::switchTo(thread().fiber, scheduler); }
  void complete(State kind, unsigned mask);
  void loadMatrices();
  void multiply();
  std::string deadlock() const;
  void checkSlack();
  std::string describeFault(int signal, uint64_t at) const;

  const EmulatedGrid &grid;
  const EmulatedImage &image;
  std::vector<Thread> threads;
  Fiber scheduler;
  unsigned current = 0;
  unsigned votes = 0;          ///< true predicates at the barrier
  const unsigned char garbage; ///< of 0xff: NaN as f32 and bf16, -1 as integer
  std::string error;
};

Run *running = nullptr; ///< while threads of a kernel run

/// All stacks, each with a page below it that cannot be accessed.
char *stacks() {
  static char *const memory = [] {
    const size_t bytes = maxThreads * stackBytes;
    void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return static_cast<char *>(nullptr);
    for (size_t i = 0; i < maxThreads; ++i)
      mprotect(static_cast<char *>(base) + i * stackBytes, emulatedPage, PROT_NONE);
    return static_cast<char *>(base);
  }();
  return memory;
}

/// While it lives, accesses that the processor refuses end the launch and not the
/// process. The handler has its own stack since a fiber's may be full.
class FaultHandler {
public:
  FaultHandler() {
    static char stack[64 << 10];
    stack_t own = {};
    own.ss_sp = stack;
    own.ss_size = sizeof stack;
    sigaltstack(&own, &oldStack);
    struct sigaction action = {};
    action.sa_sigaction = [](int signal, siginfo_t *info, void *) {
      if (running)
        running->fault(signal, info->si_addr);
      std::signal(signal, SIG_DFL); // not of a kernel
    };
    // The handler does not return, so the signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &action, &old[i]);
  }

  ~FaultHandler() {
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &old[i], nullptr);
    sigaltstack(&oldStack, nullptr);
  }

  FaultHandler(const FaultHandler &) = delete;
  FaultHandler &operator=(const FaultHandler &) = delete;

private:
  static constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  struct sigaction old[std::size(signals)];
  stack_t oldStack;
};

/// While it lives, the pages around dynamic shared memory cannot be accessed.
class ProtectedPages {
public:
  explicit ProtectedPages(const EmulatedImage &image) : image(image) {
    protect(PROT_NONE);
  }
  ~ProtectedPages() { protect(PROT_READ | PROT_WRITE); }

  ProtectedPages(const ProtectedPages &) = delete;
  ProtectedPages &operator=(const ProtectedPages &) = delete;

private:
  void protect(int how) {
    mprotect(image.dynamicPages - emulatedPage, emulatedPage, how);
    mprotect(image.dynamicPages + image.dynamicPageBytes, emulatedPage, how);
  }
  const EmulatedImage &image;
};

std::string Run::all() {
  if (!stacks())
    return "no memory for the stacks of the threads";
  const FaultHandler faults;
  const ProtectedPages pages(image);
  *image.blocks = grid.blocks;
  *image.threads = grid.threads;
  running = this;
  for (unsigned i = 0; i < grid.blocks && error.empty(); ++i)
    block(grid.descending ? grid.blocks - 1 - i : i);
  running = nullptr;
  return error;
}

void Run::block(unsigned index) {
  *image.blockIndex = index;
  poison(image.staticShared, image.staticSharedBytes);
  poison(image.dynamicPages, image.dynamicPageBytes);
  for (unsigned i = 0; i < grid.threads; ++i) {
    char *stack = stacks() + i * stackBytes;
    threads[i].fiber.start(stack, stackBytes, [] { running->runThread(); });
    threads[i].state = State::Ready;
    threads[i].copies.clear();
    threads[i].group = 0;
  }
  const unsigned warps = (grid.threads + warpSize - 1) / warpSize;
  while (error.empty()) {
    for (unsigned i = 0; i < warps; ++i) {
      unsigned warp = grid.descending ? warps - 1 - i : i;
      while (runReadyLanes(warp * warpSize))
        if (!error.empty())
          return;
    }
    auto all = [&](State state) {
      return std::ranges::all_of(
          threads, [=](const Thread &thread) { return thread.state == state; });
    };
    if (all(State::Ended))
      break;
    if (all(State::Barrier))
      for (Thread &thread : threads) {
        thread.state = State::Ready;
        thread.count = votes;
      }
    else
      error = deadlock();
    votes = 0;
  }
  if (error.empty())
    checkSlack();
}

/// False if no lane of the warp can run.
bool Run::runReadyLanes(unsigned warpBegin) {
  const unsigned lanes = std::min(warpSize, grid.threads - warpBegin);
  bool any = false;
  for (unsigned i = 0; i < lanes && error.empty(); ++i) {
    current = warpBegin + (grid.descending ? lanes - 1 - i : i);
    if (thread().state != State::Ready)
      continue;
    any = true;
    *image.threadIndex = current;
    Fiber::switchTo(scheduler, thread().fiber);
  }
  return any;
}

void Run::runThread() {
  image.run(grid.arguments.data());
  thread().state = State::Ended;
  suspend();
}

std::string Run::describeFault(int signal, uint64_t at) const {
  if (signal != SIGSEGV && signal != SIGBUS)
    return signal == SIGFPE ? "integer division by zero" : "a trap";
  const auto stack = reinterpret_cast<uint64_t>(stacks() + current * stackBytes);
  if (at >= stack && at < stack + emulatedPage)
    return "needs more than " + std::to_string(stackBytes) + " bytes of stack";

  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(at));
  std::string what = std::string("access to ") + text + " where no memory is";
  const auto shared = reinterpret_cast<uint64_t>(image.dynamicShared);
  const auto pages = reinterpret_cast<uint64_t>(image.dynamicPages);
  if (at >= pages - emulatedPage &&
      at < pages + image.dynamicPageBytes + emulatedPage)
    return what + ": byte " + std::to_string(int64_t(at - shared)) + " of " +
           std::to_string(grid.sharedBytes) + " of dynamic shared memory";

  // Names the argument whose pointer is nearest.
  int nearest = -1;
  int64_t offset = 0;
  for (size_t i = 0; i < grid.arguments.size(); ++i) {
    if (image.parameters[i] != 'p')
      continue;
    auto difference = int64_t(at - *static_cast<uint64_t *>(grid.arguments[i]));
    if (nearest < 0 || std::abs(difference) < std::abs(offset)) {
      nearest = int(i);
      offset = difference;
    }
  }
  if (nearest >= 0)
    what += ": byte " + std::to_string(offset) + " from the pointer of argument " +
            std::to_string(nearest);
  return what;
}

unsigned Run::barrier(bool predicate) {
  votes += predicate;
  thread().state = State::Barrier;
  suspend();
  return thread().count;
}

/// The thread has its operands in place. Returns when all threads that `mask`
/// names have, and the results are in place. A lane that has ended is waited for
/// like any other: the hardware lets it be, but only if it ended in time.
void Run::warpOperation(State kind, unsigned mask) {
  if (!(mask >> lane() & 1))
    fail([&] {
      return describe(kind) + withMask(mask) + ", which does not name its own lane " +
             std::to_string(lane());
    });
  Thread &self = thread();
  self.state = kind;
  self.mask = mask;
  unsigned live = 0;
  for (unsigned i = 0; i < lanesOfWarp(); ++i) {
    const Thread &other = warp()[i];
    if (!(mask >> i & 1))
      continue;
    live |= 1u << i;
    if (other.state != kind || other.mask != mask)
      return suspend();
  }
  complete(kind, live);
}

void Run::complete(State kind, unsigned live) {
  Thread *lanes = warp();
  auto forEach = [&](auto action) {
    for (unsigned i = 0; i < warpSize; ++i)
      if (live >> i & 1)
        action(lanes[i]);
  };
  switch (kind) {
  case State::Shuffle: {
    uint64_t values[warpSize];
    std::memset(values, 0xff, sizeof values);
    for (unsigned i = 0; i < warpSize; ++i)
      if (live >> i & 1)
        values[i] = lanes[i].value;
    forEach([&](Thread &thread) { thread.value = values[thread.source]; });
    break;
  }
  case State::Ballot: {
    unsigned ballot = 0;
    for (unsigned i = 0; i < warpSize; ++i)
      if (live >> i & 1)
        ballot |= unsigned(lanes[i].predicate) << i;
    forEach([&](Thread &thread) { thread.value = ballot; });
    break;
  }
  case State::LoadMatrices:
  case State::Multiply:
    if (live != ~0u)
      fail([&] {
        return std::string(describe(kind)) + " without all lanes of the warp";
      });
    if (kind == State::LoadMatrices)
      loadMatrices();
    else
      multiply();
    break;
  default:
    break;
  }
  forEach([](Thread &thread) { thread.state = State::Ready; });
}

void Run::loadMatrices() {
  const Thread *lanes = warp();
  const unsigned count = lanes[0].count;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned matrix = 0; matrix < count; ++matrix) {
      auto element = [&](unsigned row, unsigned column) -> unsigned {
        uint16_t bits;
        std::memcpy(
            &bits,
            static_cast<const char *>(lanes[matrix * 8 + row].row) + 2 * column, 2);
        return bits;
      };
      const unsigned major = lane / 4, minor = lane % 4 * 2;
      lanes[lane].fragments[matrix] =
          lanes[0].transposed
              ? element(minor, major) | element(minor + 1, major) << 16
              : element(major, minor) | element(major, minor + 1) << 16;
    }
}

/// Sums in double, rounded once: what hardware gives differs in the last bits.
void Run::multiply() {
  const Thread *lanes = warp();
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const unsigned group = lane / 4, pair = lane % 4 * 2;
    for (unsigned i = 0; i < 2; ++i) {
      auto part = [&](unsigned pairOfBf16) {
        return floatOfBf16(pairOfBf16 >> 16 * i);
      };
      a[group][pair + i] = part(lanes[lane].a[0]);
      a[group + 8][pair + i] = part(lanes[lane].a[1]);
      a[group][pair + 8 + i] = part(lanes[lane].a[2]);
      a[group + 8][pair + 8 + i] = part(lanes[lane].a[3]);
      b[pair + i][group] = part(lanes[lane].b[0]);
      b[pair + 8 + i][group] = part(lanes[lane].b[1]);
    }
  }
  double c[16][8] = {};
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < 8; ++column)
        c[row][column] += double(a[row][k]) * b[k][column];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      float &value = lanes[lane].c[i];
      value = float(value + c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
    }
}

void Run::checkShared(const void *address, const char *user) {
  auto *at = static_cast<const unsigned char *>(address);
  auto within = [&](const unsigned char *begin, size_t bytes) {
    return at >= begin && bytes >= copyBytes && at <= begin + bytes - copyBytes;
  };
  if (reinterpret_cast<uint64_t>(at) % copyBytes)
    fail([&] {
      return std::string(user) + " of a shared address that is no multiple of 16";
    });
  if (!within(image.dynamicShared, grid.sharedBytes) &&
      !within(image.staticShared, image.staticSharedBytes))
    fail([&] {
      return std::string(user) +
             " of an address that is not in shared memory (byte " +
             std::to_string(at - image.dynamicShared) + " of " +
             std::to_string(grid.sharedBytes) + " of dynamic shared memory)";
    });
}

void Run::waitForCopies(unsigned pending) {
  Thread &self = thread();
  auto copy = self.copies.begin();
  for (; copy != self.copies.end() && copy->group + pending < self.group; ++copy)
    if (copy->from)
      std::memcpy(copy->to, copy->from, copyBytes);
    else
      std::memset(copy->to, 0, copyBytes);
  self.copies.erase(self.copies.begin(), copy);
}

/// What each thread waits for, in runs of threads that wait for the same.
std::string Run::deadlock() const {
  std::string text =
      "block " + std::to_string(*image.blockIndex) + ": no thread can go on:";
  constexpr unsigned listed = 8;
  unsigned runs = 0;
  for (unsigned begin = 0, end; begin < grid.threads; begin = end) {
    const Thread &first = threads[begin];
    const bool inWarp = first.state != State::Barrier && first.state != State::Ended;
    for (end = begin + 1; end < grid.threads; ++end)
      if (threads[end].state != first.state ||
          (inWarp && threads[end].mask != first.mask))
        break;
    if (++runs > listed)
      return text + " ...";
    text += (runs == 1 ? " " : ", ") + std::to_string(begin) +
            (end - begin > 1 ? "-" + std::to_string(end - 1) : "") + " " +
            describe(first.state) + (inWarp ? withMask(first.mask) : "");
  }
  return text;
}

/// Dynamic shared memory need not fill its pages; nothing may write to the rest.
void Run::checkSlack() {
  auto touched = [this](const unsigned char *begin, const unsigned char *end) {
    return std::any_of(begin, end, [this](unsigned char x) { return x != garbage; });
  };
  if (touched(image.dynamicPages, image.dynamicShared) ||
      touched(image.dynamicShared + grid.sharedBytes,
              image.dynamicPages + image.dynamicPageBytes))
    error = "block " + std::to_string(*image.blockIndex) + " wrote outside of its " +
            std::to_string(grid.sharedBytes) + " bytes of dynamic shared memory";
}

} // namespace

const EmulatorServices test::emulatorServices = {
    .fail =
        [](const char *what, const char *file, unsigned line) {
          running->fail([&] {
            return line ? std::string(file) + ":" + std::to_string(line) + ": " + what
                        : what;
          });
        },
    .barrier = [](bool predicate) { return running->barrier(predicate); },
    .syncWarp = [](unsigned mask) { running->warpOperation(State::SyncWarp, mask); },
    .shuffle =
        [](unsigned mask, unsigned long long value, unsigned source) {
          Thread &thread = running->thread();
          thread.value = value;
          thread.source = source;
          running->warpOperation(State::Shuffle, mask);
          return static_cast<unsigned long long>(thread.value);
        },
    .ballot =
        [](unsigned mask, bool predicate) {
          Thread &thread = running->thread();
          thread.predicate = predicate;
          running->warpOperation(State::Ballot, mask);
          return static_cast<unsigned>(thread.value);
        },
    .loadMatrices =
        [](unsigned *out, const void *row, unsigned count, bool transposed) {
          if (running->lane() < count * 8)
            running->checkShared(row, "ldmatrix");
          Thread &thread = running->thread();
          thread.fragments = out;
          thread.row = row;
          thread.count = count;
          thread.transposed = transposed;
          running->warpOperation(State::LoadMatrices, ~0u);
        },
    .multiply =
        [](float *c, const unsigned *a, const unsigned *b) {
          Thread &thread = running->thread();
          thread.c = c;
          thread.a = a;
          thread.b = b;
          running->warpOperation(State::Multiply, ~0u);
        },
    .copy =
        [](void *shared, const void *global, bool valid) {
          running->checkShared(shared, "cp.async");
          if (valid && reinterpret_cast<uint64_t>(global) % copyBytes)
            running->fail([] {
              return "cp.async of a global address that is no multiple of 16";
            });
          Thread &thread = running->thread();
          running->poison(shared, copyBytes);
          thread.copies.push_back({shared, valid ? global : nullptr, thread.group});
        },
    .commitCopies = [] { ++running->thread().group; },
    .waitForCopies = [](unsigned pending) { running->waitForCopies(pending); },
};

std::string test::runGrid(const EmulatedGrid &grid) { return Run(grid).all(); }
