#include "runtime/comm/inprocess/InProcess.h"

#include "runtime/comm/Failure.h"
#include "runtime/comm/HostChannel.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace fsdpq::rt {
namespace {

/// What the ranks of a run share.
struct World {
  explicit World(int64_t size, std::chrono::milliseconds timeout)
      : size(size), timeout(timeout) {}

  /// A place where a group meets again and again. What a member brings is read
  /// by the others between its arrival and the departure of all.
  struct Meeting {
    explicit Meeting(std::vector<int64_t> ranks)
        : members(std::move(ranks)), brought(members.size()) {}

    std::vector<int64_t> members;
    std::vector<const void *> brought;
    std::vector<int64_t> present; ///< positions of those that have come
    uint64_t round = 0;
  };

  const int64_t size;
  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::string, std::vector<int64_t>>,
           std::shared_ptr<Meeting>>
      meetings;
  std::optional<Failure> failure; ///< the first one

  std::shared_ptr<Meeting> meetingOf(const std::string &name,
                                     const std::vector<int64_t> &members) {
    std::lock_guard lock(mutex);
    auto &meeting = meetings[{name, members}];
    if (!meeting)
      meeting = std::make_shared<Meeting>(members);
    return meeting;
  }

  /// Brings `brings` and waits until all members have come. `what` is what for.
  void arrive(Meeting &meeting, int64_t position, const void *brings,
              const std::function<std::string()> &what) {
    std::unique_lock lock(mutex);
    // Once the run has failed no round is completed: those who had come are
    // gone, with what they brought.
    if (!failure) {
      meeting.brought[static_cast<size_t>(position)] = brings;
      if (completes(meeting, position))
        return;
      const uint64_t round = meeting.round;
      const bool inTime = changed.wait_for(
          lock, timeout, [&] { return meeting.round != round || failure; });
      if (meeting.round != round)
        return;
      if (!inTime) {
        failure = {7004, rankList(missing(meeting)) + " did not come to " +
                             what() + " within " + durationText(timeout)};
        changed.notify_all();
      }
    }
    throw failure->at(
        "rank " +
        std::to_string(meeting.members[static_cast<size_t>(position)]) + ", " +
        what());
  }

  /// Waits until all that arrived have read what the others brought, which they
  /// do whatever else fails.
  void depart(Meeting &meeting, int64_t position) {
    std::unique_lock lock(mutex);
    if (completes(meeting, position))
      return;
    changed.wait(lock,
                 [&, round = meeting.round] { return meeting.round != round; });
  }

  /// Whether this member is the last to come.
  bool completes(Meeting &meeting, int64_t position) {
    meeting.present.push_back(position);
    if (meeting.present.size() < meeting.members.size())
      return false;
    meeting.present.clear();
    ++meeting.round;
    changed.notify_all();
    return true;
  }

  /// Ends the run on all ranks, unless something else has.
  void fail(const Failure &cause) {
    std::lock_guard lock(mutex);
    if (!failure)
      failure = cause;
    changed.notify_all();
  }

  [[noreturn]] void failAndThrow(const Failure &cause) {
    fail(cause);
    throw cause.at("");
  }

  static std::vector<int64_t> missing(const Meeting &meeting) {
    std::vector<int64_t> ranks;
    for (size_t i = 0; i < meeting.members.size(); ++i)
      if (std::find(meeting.present.begin(), meeting.present.end(),
                    static_cast<int64_t>(i)) == meeting.present.end())
        ranks.push_back(meeting.members[i]);
    return ranks;
  }
};

class InProcessChannel final : public HostChannel {
public:
  InProcessChannel(std::shared_ptr<World> world,
                   const std::vector<int64_t> &members, int64_t rank,
                   Device &device, uint16_t stream, const std::string &name)
      : HostChannel(members, rank, device, stream, name),
        world(std::move(world)),
        meeting(this->world->meetingOf(name, members)) {}

private:
  struct Offer {
    CollectiveCall call;
    std::span<const std::byte *const> send;
  };

  void swap(const CollectiveCall &call, const char *where,
            std::span<const std::byte *const> send,
            std::span<std::byte *const> receive, int64_t bytes) override {
    const Offer mine{call, send};
    world->arrive(*meeting, position(), &mine,
                  [&] { return describe(call, where); });
    std::optional<Failure> difference;
    for (int64_t i = 0; i < size(); ++i) {
      if (i == position())
        continue;
      const auto &other =
          *static_cast<const Offer *>(meeting->brought[static_cast<size_t>(i)]);
      if (!(other.call == call))
        difference = {
            7005, "rank " + std::to_string(ranks()[static_cast<size_t>(i)]) +
                      " calls " + other.call.text() + " where rank " +
                      std::to_string(ranks()[static_cast<size_t>(position())]) +
                      " calls " + describe(call, where)};
      else if (bytes > 0)
        std::memcpy(receive[static_cast<size_t>(i)],
                    other.send[static_cast<size_t>(position())],
                    static_cast<size_t>(bytes));
    }
    // Nobody may change what others still read.
    world->depart(*meeting, position());
    if (difference)
      world->failAndThrow(*difference);
  }

  std::shared_ptr<World> world;
  std::shared_ptr<World::Meeting> meeting;
};

class InProcessRank final : public Communicator {
public:
  InProcessRank(std::shared_ptr<World> world, int64_t rank)
      : world(std::move(world)), rank_(rank) {
    for (int64_t i = 0; i < this->world->size; ++i)
      everybody.push_back(i);
    meeting = this->world->meetingOf("exchange", everybody);
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return world->size; }

  std::unique_ptr<Channel> openChannel(const std::vector<int64_t> &members,
                                       Device &device, uint16_t stream,
                                       const std::string &name) override {
    // Channels of one name may be opened again, by the next executor.
    const int64_t number = opened[{name, members}]++;
    return std::make_unique<InProcessChannel>(
        world, members, rank_, device, stream,
        number == 0 ? name : name + " " + std::to_string(number + 1));
  }

  std::vector<std::string> exchange(std::string_view mine,
                                    std::string_view what) override {
    const Gift gift{mine, what};
    world->arrive(*meeting, rank_, &gift,
                  [&] { return "the exchange of " + std::string(what); });
    std::vector<std::string> all;
    std::optional<Failure> difference;
    for (size_t i = 0; i < everybody.size(); ++i) {
      const auto &other = *static_cast<const Gift *>(meeting->brought[i]);
      if (other.what != what)
        difference = {7005, "rank " + std::to_string(i) +
                                " is at the exchange of " +
                                std::string(other.what) + " where rank " +
                                std::to_string(rank_) +
                                " is at the exchange of " + std::string(what)};
      all.emplace_back(other.data);
    }
    world->depart(*meeting, rank_);
    if (difference)
      world->failAndThrow(*difference);
    return all;
  }

  void abort(const std::string &cause) noexcept override {
    world->fail({7003, "rank " + std::to_string(rank_) + " failed: " + cause});
  }

private:
  struct Gift {
    std::string_view data, what;
  };

  std::shared_ptr<World> world;
  int64_t rank_;
  std::vector<int64_t> everybody;
  std::shared_ptr<World::Meeting> meeting;
  std::map<std::pair<std::string, std::vector<int64_t>>, int64_t> opened;
};

} // namespace

std::vector<std::unique_ptr<Communicator>>
makeInProcessRanks(int64_t size, std::chrono::milliseconds timeout) {
  auto world = std::make_shared<World>(size, timeout);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int64_t rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<InProcessRank>(world, rank));
  return ranks;
}

} // namespace fsdpq::rt
