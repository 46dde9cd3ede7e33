#include "runtime/comm/gloo/Mesh.h"

#include "runtime/comm/gloo/Signals.h"

#include <algorithm>
#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>

namespace fsdpq::rt {

using std::chrono::milliseconds;

/// How long a pair may take to be connected, all members being at it. Gloo
/// allows five times what it is told.
static constexpr milliseconds pairTime{30000};

/// How long a failure that all ranks will be told may take to be known here.
static constexpr milliseconds causeTime{1000};

std::shared_ptr<gloo::transport::Device>
makeDataDevice(const std::string &host) {
  AllSignalsBlocked blocked; // in the thread it starts
  try {
    return gloo::transport::tcp::CreateDevice(
        gloo::transport::tcp::attr(host.c_str()));
  } catch (const std::exception &error) {
    throw Error(7017, ExitCode::BadInput,
                "data cannot come to the address '" + host +
                    "': " + error.what(),
                "", "give an address of this host");
  }
}

Mesh::Mesh(ControlPlane &control,
           const std::shared_ptr<gloo::transport::Device> &device,
           const std::vector<int64_t> &members, const std::string &what) {
  const auto own = static_cast<int>(
      std::find(members.begin(), members.end(), control.rank()) -
      members.begin());
  const auto count = static_cast<int>(members.size());
  // The addresses of the pairs to all members, one after the other; the own
  // place is as long as the others.
  std::string addresses;
  size_t each = 0;
  std::string problem;
  try {
    context = device->createContext(own, count);
    context->setTimeout(pairTime / 5);
    for (int i = 0; i < count; ++i) {
      if (i == own)
        continue;
      const std::vector<char> bytes = context->createPair(i)->address().bytes();
      each = bytes.size();
      addresses.append(bytes.begin(), bytes.end());
    }
    addresses.insert(static_cast<size_t>(own) * each, each, '\0');
  } catch (const std::exception &error) {
    problem = error.what();
  }
  if (!problem.empty()) {
    control.fail({7018, "rank " + std::to_string(control.rank()) +
                            " cannot listen for data: " + problem});
    throw control.failure()->at("rank " + std::to_string(control.rank()) +
                                ", " + what);
  }
  connect(control, control.collect(members, addresses, what), members, what);
  // Nobody sends, or ends a connection, before all have them.
  control.collect(members, "", what + ", connected");
}

void Mesh::connect(ControlPlane &control,
                   const std::vector<std::string> &addresses,
                   const std::vector<int64_t> &members,
                   const std::string &what) {
  const int own = context->rank;
  std::mutex mutex;
  bool stopped = false;
  int current = -1; // the pair that is being connected
  ControlPlane::OnFailure stop(control, [&] {
    std::lock_guard lock(mutex);
    stopped = true;
    if (current >= 0)
      context->getPair(current)->close();
  });
  std::string problem;
  for (int i = 0; i < context->size; ++i) {
    if (i == own)
      continue;
    const std::string &theirs = addresses[static_cast<size_t>(i)];
    const size_t each = theirs.size() / members.size();
    const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(
                                            static_cast<size_t>(own) * each);
    {
      std::lock_guard lock(mutex);
      if (stopped)
        break;
      current = i;
    }
    try {
      context->getPair(i)->connect(
          std::vector<char>(begin, begin + static_cast<std::ptrdiff_t>(each)));
    } catch (const std::exception &error) {
      problem = "rank " + std::to_string(members[static_cast<size_t>(i)]) +
                " for data: " + error.what();
    }
    std::lock_guard lock(mutex);
    current = -1;
    if (stopped || !problem.empty())
      break;
  }
  std::optional<Failure> cause = control.failure();
  if (!problem.empty() && !cause)
    cause = control.awaitFailure(causeTime);
  if (!problem.empty() && !cause) {
    control.fail({7018, "rank " + std::to_string(control.rank()) +
                            " cannot connect to " + problem});
    cause = control.failure();
  }
  if (cause)
    throw cause->at("rank " + std::to_string(control.rank()) + ", " + what);
}

Mesh::~Mesh() = default;

void Mesh::cut() noexcept {
  for (int i = 0; i < context->size; ++i)
    if (i != context->rank)
      context->getPair(i)->close();
}

} // namespace fsdpq::rt
