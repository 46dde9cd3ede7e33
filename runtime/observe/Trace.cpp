#include "runtime/observe/Trace.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace fsdpq::rt {

using nlohmann::json;
using std::chrono::nanoseconds;

//===--- Record -------------------------------------------------------------//

/// Names the boot of a machine, since which its ranks count their time; "" if
/// the system does not tell.
static std::string machineName() {
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  return name;
}

static nanoseconds offsetOfSystemClock() {
  return nanoseconds(std::chrono::system_clock::now().time_since_epoch()) -
         nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
}

Trace::Trace(int64_t rank, size_t limit)
    : rank(rank), limit(limit), toSystemClock(offsetOfSystemClock()) {}

void Trace::setStreams(const std::vector<std::string> &newNames) {
  const size_t streams = std::max(names.size(), newNames.size());
  names.resize(streams);
  tracks.resize(streams);
  std::copy(newNames.begin(), newNames.end(), names.begin());
}

uint32_t Trace::addLabel(Label label) {
  labels.push_back(std::move(label));
  return static_cast<uint32_t>(labels.size() - 1);
}

void Trace::begin(uint16_t stream, Clock::time_point now) {
  tracks[stream].begun = now;
}

void Trace::end(uint16_t stream, uint32_t label, Kind kind,
                Clock::time_point now) {
  Track &track = tracks[stream];
  const Event event{label, track.begun, now - track.begun};
  if (label >= track.sums.size())
    track.sums.resize(label + 1);
  track.sums[label].kind = kind;
  ++track.sums[label].count;
  track.sums[label].spent += event.duration;
  if (kind != Kind::Wait || event.duration >= shortestWait)
    add(track, event);
}

void Trace::add(Track &track, const Event &event) {
  if (seen.fetch_add(1, std::memory_order_relaxed) < limit)
    track.events.push_back(event);
}

Trace::Span::Span(Trace *trace, std::string_view name) : trace(trace) {
  if (!trace)
    return;
  auto known = trace->spanLabels.find(name);
  if (known == trace->spanLabels.end())
    known = trace->spanLabels
                .emplace(name, trace->addLabel({std::string(name), "", 0}))
                .first;
  label = known->second;
  begun = Clock::now();
}

Trace::Span::~Span() {
  if (trace)
    trace->add(trace->host, {label, begun, Clock::now() - begun});
}

//===--- Report -------------------------------------------------------------//

std::vector<Trace::StreamTimes> Trace::noTimes() const {
  std::vector<StreamTimes> result;
  for (const std::string &name : names)
    result.push_back({name});
  return result;
}

std::vector<Trace::FunctionTimes> Trace::functionTimes() const {
  std::vector<FunctionTimes> result;
  const auto streamsOf = [&](const std::string &function)
      -> std::vector<StreamTimes> & {
    for (FunctionTimes &known : result)
      if (known.function == function)
        return known.streams;
    result.push_back({function, noTimes()});
    return result.back().streams;
  };
  for (size_t label = 0; label < labels.size(); ++label)
    for (size_t i = 0; i < tracks.size(); ++i) {
      if (label >= tracks[i].sums.size() ||
          tracks[i].sums[label].spent == Clock::duration::zero())
        continue;
      const Sum &sum = tracks[i].sums[label];
      StreamTimes &times = streamsOf(labels[label].function)[i];
      (sum.kind == Kind::Work            ? times.work
       : sum.kind == Kind::Communication ? times.communication
                                         : times.waiting) +=
          std::chrono::duration<double>(sum.spent).count();
    }
  return result;
}

void Trace::restartTimes() {
  for (Track &track : tracks)
    track.sums.clear();
}

std::vector<Trace::LabelTimes> Trace::labelTimes() const {
  std::vector<LabelTimes> result;
  for (const Label &label : labels)
    result.push_back({&label, Kind::Work, 0, 0});
  for (const Track &track : tracks)
    for (size_t label = 0; label < track.sums.size(); ++label) {
      const Sum &sum = track.sums[label];
      if (sum.count == 0)
        continue;
      result[label].kind = sum.kind;
      result[label].count += sum.count;
      result[label].seconds += std::chrono::duration<double>(sum.spent).count();
    }
  return result;
}

std::vector<Trace::StreamTimes> Trace::times() const {
  std::vector<StreamTimes> result = noTimes();
  for (const FunctionTimes &function : functionTimes())
    for (size_t i = 0; i < result.size(); ++i) {
      result[i].work += function.streams[i].work;
      result[i].communication += function.streams[i].communication;
      result[i].waiting += function.streams[i].waiting;
    }
  return result;
}

size_t Trace::dropped() const {
  const size_t events = seen.load(std::memory_order_relaxed);
  return events > limit ? events - limit : 0;
}

std::string Trace::serialise() const {
  std::vector<std::string> threads = names;
  threads.push_back("host");
  json texts = json::array();
  for (const Label &label : labels)
    texts.push_back({label.name, label.location, label.bytes});
  // Four numbers an event: thread, label, begin, duration, in nanoseconds.
  std::vector<int64_t> numbers;
  const auto append = [&](size_t thread, const Track &track) {
    for (const Event &event : track.events)
      for (int64_t number :
           {static_cast<int64_t>(thread), static_cast<int64_t>(event.label),
            nanoseconds(event.begun.time_since_epoch()).count(),
            nanoseconds(event.duration).count()})
        numbers.push_back(number);
  };
  for (size_t i = 0; i < tracks.size(); ++i)
    append(i, tracks[i]);
  append(tracks.size(), host);

  std::string piece;
  json::to_cbor(json{{"rank", rank},
                     {"machine", machineName()},
                     {"to_system_clock", toSystemClock.count()},
                     {"threads", threads},
                     {"labels", std::move(texts)},
                     {"dropped", dropped()},
                     {"events", std::move(numbers)}},
                piece);
  return piece;
}

//===--- Join ---------------------------------------------------------------//

namespace {

/// A rank's events as they come out of its piece.
struct Piece {
  int64_t rank;
  std::string machine;
  int64_t toSystemClock; ///< nanoseconds to add to those of the events
  uint64_t dropped;
  std::vector<std::string> threads;
  std::vector<std::string> labels; ///< the fields of an event that they give
  std::vector<int64_t> events;
};

/// A text of any bytes as a JSON string.
std::string jsonText(const std::string &text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string labelFields(const json &label) {
  const std::string location = label.at(1);
  const uint64_t bytes = label.at(2);
  std::string arguments;
  if (!location.empty())
    arguments += "\"location\": " + jsonText(location);
  if (bytes > 0)
    arguments += (arguments.empty() ? "\"bytes\": " : ", \"bytes\": ") +
                 std::to_string(bytes);
  std::string fields =
      "\"name\": " + jsonText(label.at(0));
  if (!arguments.empty())
    fields += ", \"args\": {" + arguments + "}";
  return fields;
}

Piece parse(const std::string &bytes) {
  const json parsed = json::from_cbor(bytes);
  Piece piece;
  parsed.at("rank").get_to(piece.rank);
  parsed.at("machine").get_to(piece.machine);
  parsed.at("to_system_clock").get_to(piece.toSystemClock);
  parsed.at("dropped").get_to(piece.dropped);
  parsed.at("threads").get_to(piece.threads);
  for (const json &label : parsed.at("labels"))
    piece.labels.push_back(labelFields(label));
  parsed.at("events").get_to(piece.events);
  for (size_t i = 0; i < piece.events.size(); i += 4) {
    piece.threads.at(static_cast<size_t>(piece.events[i]));
    piece.labels.at(static_cast<size_t>(piece.events.at(i + 1)));
    piece.events.at(i + 3);
  }
  return piece;
}

void appendMetadata(std::string &text, int64_t rank, int64_t thread,
                    const char *what, const char *key,
                    const std::string &value) {
  text += "{\"ph\": \"M\", \"pid\": " + std::to_string(rank) +
          ", \"tid\": " + std::to_string(thread) + ", \"name\": \"" + what +
          "\", \"args\": {\"" + key + "\": " + jsonText(value) + "}},\n";
}

void appendRank(std::string &text, const Piece &piece, int64_t start) {
  appendMetadata(text, piece.rank, 0, "process_name", "name",
                 "rank " + std::to_string(piece.rank));
  if (piece.dropped > 0)
    appendMetadata(text, piece.rank, 0, "process_labels", "labels",
                   std::to_string(piece.dropped) + " events dropped");
  for (size_t i = 0; i < piece.threads.size(); ++i)
    appendMetadata(text, piece.rank, static_cast<int64_t>(i), "thread_name",
                   "name", piece.threads[i]);
  for (size_t i = 0; i < piece.events.size(); i += 4) {
    const int64_t begin = piece.events[i + 2] + piece.toSystemClock - start;
    const int64_t duration = piece.events[i + 3];
    char numbers[160];
    std::snprintf(numbers, sizeof numbers,
                  "{\"ph\": \"X\", \"pid\": %" PRId64 ", \"tid\": %" PRId64
                  ", \"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d, ",
                  piece.rank, piece.events[i], begin / 1000,
                  static_cast<int>(begin % 1000), duration / 1000,
                  static_cast<int>(duration % 1000));
    text += numbers;
    text += piece.labels[static_cast<size_t>(piece.events[i + 1])];
    text += "},\n";
  }
}

} // namespace

std::string joinTraces(const std::vector<std::string> &pieces) {
  std::vector<Piece> parsed;
  std::map<std::string, int64_t> offsets; ///< of the machines' clocks
  int64_t start = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < pieces.size(); ++i) {
    try {
      parsed.push_back(parse(pieces[i]));
    } catch (const std::exception &error) { // JSON's, or a number out of range
      throw Error(5060, ExitCode::RunFailure,
                  "what rank " + std::to_string(i) +
                      " sent as its trace cannot be read: " + error.what(),
                  "", "use the same build on all ranks");
    }
    Piece &piece = parsed.back();
    // When a rank compared its clocks, it may have been held up.
    if (!piece.machine.empty())
      piece.toSystemClock =
          offsets.emplace(piece.machine, piece.toSystemClock).first->second;
    for (size_t j = 2; j < piece.events.size(); j += 4)
      start = std::min(start, piece.events[j] + piece.toSystemClock);
  }

  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const Piece &piece : parsed)
    appendRank(text, piece, start);
  if (text.ends_with(",\n"))
    text.erase(text.size() - 2, 1);
  return text + "]}\n";
}

} // namespace fsdpq::rt
