//===- Trace.h - What ran when ----------------------------------*- C++ -*-===//
//
// Each rank records what its streams and its host do; the ranks' pieces become
// one file in Chrome's trace format, for ui.perfetto.dev. Ranks are its
// processes, streams its threads, the host's spans one thread more.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// The events of one rank. begin() and end() are called on the streams, each
/// stream being one thread at a time; all else by the rank's thread, while the
/// streams are idle (spans excepted).
class Trace {
public:
  enum class Kind : uint8_t { Work, Communication, Wait };

  struct Label {
    std::string name;
    std::string location; ///< "": none
    uint64_t bytes = 0;   ///< moved; 0: not shown
    std::string function{}; ///< that it is part of; "": none
  };

  /// Seconds since the trace began, events that were dropped included.
  struct StreamTimes {
    std::string stream;
    double work = 0, communication = 0;
    double waiting = 0; ///< for other streams: on stream 0, communication
                        ///< that computing did not hide
    double busy() const { return work + communication; }
  };

  struct FunctionTimes {
    std::string function;
    std::vector<StreamTimes> streams; ///< all of them
  };

  /// Of `limit` events all are kept; of those after them only the times count.
  explicit Trace(int64_t rank, size_t limit = 200'000);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  /// Names the streams from 0 on. Streams keep what they have recorded, and
  /// those beyond `names` their names.
  void setStreams(const std::vector<std::string> &names);
  /// Returns the label's number, for end().
  uint32_t addLabel(Label label);

  using Clock = std::chrono::steady_clock;

  void begin(uint16_t stream, Clock::time_point now = Clock::now());
  /// Ends what began last on the stream. Of waits, those that took less than
  /// `shortestWait` are not shown.
  void end(uint16_t stream, uint32_t label, Kind kind,
           Clock::time_point now = Clock::now());

  static constexpr std::chrono::microseconds shortestWait{20};

  /// Something the host does, for as long as this lives. Spans may nest.
  class Span {
  public:
    /// `trace` may be null: nothing happens.
    Span(Trace *trace, std::string_view name);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

  private:
    Trace *trace;
    uint32_t label = 0;
    Clock::time_point begun;
  };

  /// All executions of what one label stands for.
  struct LabelTimes {
    const Label *label;
    Kind kind;
    uint64_t count;
    double seconds;
  };
  /// What was measured so far counts no more in times; events stay.
  void restartTimes();
  /// In the order of the labels; those that were never executed count 0.
  std::vector<LabelTimes> labelTimes() const;

  std::vector<StreamTimes> times() const;
  /// The same for each function that has run, in the order of the labels.
  std::vector<FunctionTimes> functionTimes() const;
  size_t dropped() const;

  /// What joinTraces() takes.
  std::string serialise() const;

private:
  struct Event {
    uint32_t label;
    Clock::time_point begun;
    Clock::duration duration;
  };
  /// What an instruction has taken, all its executions together.
  struct Sum {
    Kind kind = Kind::Work;
    uint64_t count = 0;
    Clock::duration spent{0};
  };
  struct Track {
    Clock::time_point begun;
    std::vector<Event> events;
    std::vector<Sum> sums; ///< by label; as many as were needed
  };

  void add(Track &track, const Event &event);
  std::vector<StreamTimes> noTimes() const;

  int64_t rank;
  size_t limit;
  std::chrono::nanoseconds toSystemClock; ///< added to times, for other machines
  std::vector<std::string> names;
  std::vector<Label> labels;
  std::map<std::string, uint32_t, std::less<>> spanLabels;
  std::vector<Track> tracks; ///< of the streams
  Track host;
  std::atomic<size_t> seen = 0;
};

/// The file made of what the ranks' traces gave, its times counted from the
/// first event. Ranks of one machine agree on the time, those of several as well
/// as the machines' system clocks do. Error 5060: a piece that is not one.
std::string joinTraces(const std::vector<std::string> &pieces);

} // namespace fsdpq::rt
