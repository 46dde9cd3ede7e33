#include "runtime/train/Parameters.h"

#include "runtime/comm/Communicator.h"
#include "runtime/plan/Mesh.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cstring>

namespace fsdpq::rt {

const plan::Unit &unitOf(const plan::Plan &plan,
                         const plan::Parameter &parameter) {
  return *plan.units()->Get(parameter.unit());
}

int64_t instanceCount(const plan::Plan &plan,
                      const plan::Parameter &parameter) {
  return ordinalCount(unitOf(plan, parameter));
}

int64_t layerOf(const plan::Plan &plan, const plan::Parameter &parameter,
                int64_t ordinal) {
  const auto *layers = unitOf(plan, parameter).layers();
  if (!layers || layers->size() == 0)
    return -1;
  return layers->Get(static_cast<uint32_t>(ordinal));
}

int64_t elementCount(const plan::Parameter &parameter) {
  int64_t elements = 1;
  for (int64_t dimension : *parameter.shape())
    elements *= dimension; // checkPlan bounds the product
  return elements;
}

std::string instanceName(const flatbuffers::String &pattern,
                         const plan::Plan &plan,
                         const plan::Parameter &parameter, int64_t ordinal) {
  static constexpr std::string_view placeholder = "{layer}";
  std::string name = pattern.str();
  const std::string layer = std::to_string(layerOf(plan, parameter, ordinal));
  for (size_t at = 0; (at = name.find(placeholder, at)) != std::string::npos;
       at += layer.size())
    name.replace(at, placeholder.size(), layer);
  return name;
}

bool isAdapter(const plan::Parameter &parameter) {
  return parameter.init() != plan::Init::Checkpoint;
}

bool hasGradient(const plan::Plan &plan, const plan::Parameter &parameter) {
  return parameter.trainable() && unitOf(plan, parameter).gradient() >= 0;
}

int64_t trainableElements(const plan::Plan &plan) {
  int64_t total = 0;
  for (const plan::Parameter *parameter : *plan.parameters())
    if (parameter->trainable())
      total += elementCount(*parameter) * instanceCount(plan, *parameter);
  return total;
}

std::vector<int64_t> shapeOf(const plan::Parameter &parameter) {
  return {parameter.shape()->begin(), parameter.shape()->end()};
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

namespace {

constexpr auto elementBytes = static_cast<int64_t>(sizeof(float));

/// Where an instance's values lie among the ranges of its unit. Ranges are
/// multiples of 256 bytes and components start at multiples of 4, so no element
/// is cut.
struct Place {
  uint32_t slice; ///< of one range
  int64_t offset; ///< of the values in the whole unit, bytes
  int64_t rangeBytes;
  int64_t elements;

  /// The elements that range `number` holds.
  ElementRange within(int64_t number) const {
    const auto elementAt = [&](int64_t byte) {
      return std::clamp((byte - offset) / elementBytes, int64_t(0), elements);
    };
    return {elementAt(number * rangeBytes),
            elementAt((number + 1) * rangeBytes)};
  }

  /// The byte of range `number` at which `element`, which it holds, starts.
  size_t byteOf(int64_t element, int64_t number) const {
    return static_cast<size_t>(offset + element * elementBytes -
                               number * rangeBytes);
  }
};

Place placeIn(const plan::Plan &plan, const plan::Parameter &parameter,
              uint32_t slice) {
  const auto &components = *parameter.components();
  if (components.size() != 1 || components.Get(0)->dtype()->str() != "f32" ||
      components.Get(0)->elements() !=
          static_cast<uint64_t>(elementCount(parameter)))
    throw Error(5003, ExitCode::BadInput,
                "the plan stores parameter '" + parameter.name()->str() +
                    "' as " + parameter.scheme()->str() +
                    ", not as f32 values that can be read and written");
  return {slice, static_cast<int64_t>(components.Get(0)->offset()),
          static_cast<int64_t>(unitOf(plan, parameter).bytes() /
                               plan.mesh()->shards()),
          elementCount(parameter)};
}

Place placeOfValues(const plan::Plan &plan, const plan::Parameter &parameter) {
  return placeIn(plan, parameter, unitOf(plan, parameter).range());
}

Place placeOfGradient(const plan::Plan &plan,
                      const plan::Parameter &parameter) {
  if (!hasGradient(plan, parameter))
    throw Error(5003, ExitCode::BadInput,
                "the plan keeps no gradient of parameter '" +
                    parameter.name()->str() + "'");
  return placeIn(plan, parameter,
                 static_cast<uint32_t>(unitOf(plan, parameter).gradient()));
}

/// The number of the range that this rank holds.
int64_t heldRange(const Executor &executor) {
  return executor.communicator().rank() %
         executor.plan().plan().mesh()->shards();
}

void writeHeld(Executor &executor, const Place &place, int64_t ordinal,
               std::span<const float> values) {
  if (values.empty())
    return;
  const int64_t range = heldRange(executor);
  executor.writeSlice(place.slice, ordinal, values.data(), values.size_bytes(),
                      place.byteOf(place.within(range).begin, range));
}

void writeAll(Executor &executor, const Place &place, int64_t ordinal,
              const float *values) {
  const ElementRange held = place.within(heldRange(executor));
  writeHeld(executor, place, ordinal,
            {values + held.begin, static_cast<size_t>(held.size())});
}

/// Consecutive elements of an instance.
struct Piece {
  Place place;
  int64_t ordinal;
  ElementRange elements;

  ElementRange within(int64_t range) const {
    const ElementRange held = place.within(range);
    const int64_t begin = std::max(elements.begin, held.begin);
    return {begin, std::max(begin, std::min(elements.end, held.end))};
  }
};

/// Appends what this rank holds of the piece.
void appendHeld(const Executor &executor, const Piece &piece,
                std::string &bytes) {
  const int64_t range = heldRange(executor);
  const ElementRange held = piece.within(range);
  if (held.size() == 0)
    return;
  const size_t start = bytes.size();
  bytes.resize(start + static_cast<size_t>(held.size() * elementBytes));
  executor.readSlice(piece.place.slice, piece.ordinal, bytes.data() + start,
                     bytes.size() - start,
                     piece.place.byteOf(held.begin, range));
}

/// All elements of the pieces, one piece after the other, in one exchange.
std::vector<float> gather(const Executor &executor,
                          const std::vector<Piece> &pieces) {
  // Every group of ranks that hold a whole model holds the same: the first one
  // speaks for all.
  const int64_t shards = executor.plan().plan().mesh()->shards();
  Communicator &communicator = executor.communicator();
  std::string mine;
  if (communicator.rank() < shards)
    for (const Piece &piece : pieces)
      appendHeld(executor, piece, mine);
  const std::vector<std::string> parts =
      communicator.exchange(mine, "the values of parameters");

  std::vector<float> values;
  std::vector<size_t> taken(static_cast<size_t>(shards));
  for (const Piece &piece : pieces)
    for (int64_t range = 0; range < shards; ++range) {
      const auto count = static_cast<size_t>(piece.within(range).size());
      const size_t bytes = count * sizeof(float), filled = values.size();
      const std::string &part = parts[static_cast<size_t>(range)];
      size_t &from = taken[static_cast<size_t>(range)];
      if (from + bytes > part.size())
        throw Error(7021, ExitCode::PeerFailure,
                    "rank " + std::to_string(range) + " gave " +
                        std::to_string(part.size()) +
                        " bytes of the parameters' values, too few",
                    "", "run the same version and plan on all ranks");
      values.resize(filled + count);
      if (count > 0)
        std::memcpy(values.data() + filled, part.data() + from, bytes);
      from += bytes;
    }
  return values;
}

/// Collects pieces until a chunk is full.
void readPlaces(const Executor &executor,
                const std::vector<std::pair<Place, int64_t>> &places,
                const std::function<void(std::span<const float>)> &visit,
                int64_t chunkElements) {
  std::vector<Piece> pieces;
  int64_t collected = 0;
  const auto flush = [&] {
    if (!pieces.empty())
      visit(gather(executor, pieces));
    pieces.clear();
    collected = 0;
  };
  for (const auto &[place, ordinal] : places)
    for (int64_t begin = 0; begin < place.elements;) {
      const int64_t end =
          std::min(place.elements, begin + chunkElements - collected);
      pieces.push_back({place, ordinal, {begin, end}});
      collected += end - begin;
      begin = end;
      if (collected == chunkElements)
        flush();
    }
  flush();
}

std::vector<float> readPlace(const Executor &executor, const Place &place,
                             int64_t ordinal) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(place.elements));
  readPlaces(
      executor, {{place, ordinal}},
      [&](std::span<const float> some) {
        values.insert(values.end(), some.begin(), some.end());
      },
      maxReadElements);
  return values;
}

} // namespace

ElementRange heldElements(const Executor &executor,
                          const plan::Parameter &parameter) {
  return placeOfValues(executor.plan().plan(), parameter)
      .within(heldRange(executor));
}

void writeHeldElements(Executor &executor, const plan::Parameter &parameter,
                       int64_t ordinal, std::span<const float> values) {
  writeHeld(executor, placeOfValues(executor.plan().plan(), parameter), ordinal,
            values);
}

void writeParameter(Executor &executor, const plan::Parameter &parameter,
                    int64_t ordinal, const float *values) {
  writeAll(executor, placeOfValues(executor.plan().plan(), parameter), ordinal,
           values);
}

void readParameters(const Executor &executor,
                    const std::vector<Instance> &instances,
                    const std::function<void(std::span<const float>)> &visit,
                    int64_t chunkElements) {
  std::vector<std::pair<Place, int64_t>> places;
  for (const Instance &instance : instances)
    places.push_back(
        {placeOfValues(executor.plan().plan(), *instance.parameter),
         instance.ordinal});
  readPlaces(executor, places, visit, chunkElements);
}

std::vector<float> readParameter(const Executor &executor,
                                 const plan::Parameter &parameter,
                                 int64_t ordinal) {
  return readPlace(executor, placeOfValues(executor.plan().plan(), parameter),
                   ordinal);
}

void writeGradient(Executor &executor, const plan::Parameter &parameter,
                   int64_t ordinal, const float *values) {
  writeAll(executor, placeOfGradient(executor.plan().plan(), parameter),
           ordinal, values);
}

std::vector<float> readGradient(const Executor &executor,
                                const plan::Parameter &parameter,
                                int64_t ordinal) {
  return readPlace(executor, placeOfGradient(executor.plan().plan(), parameter),
                   ordinal);
}

} // namespace fsdpq::rt
