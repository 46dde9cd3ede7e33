#include "runtime/plan/Hardware.h"
#include "runtime/io/Json.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace fsdpq::rt {

namespace {

using nlohmann::json;

std::string digits(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// An object of the description, every field of which is known.
class Fields {
public:
  Fields(const json &object, std::string place,
         std::initializer_list<std::string_view> known)
      : object(object), place(std::move(place)) {
    for (const auto &[key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw Error(3041, ExitCode::BadInput, "unknown field '" + key + "'",
                    this->place, "known are " + list(known));
  }

  double positive(const std::string &key) const {
    return inRange(key, requireNumber(object, key, place), false, 0);
  }

  double notNegative(const std::string &key) const {
    return inRange(key, requireNumber(object, key, place), true, 0);
  }

  /// 0 if the field is not there.
  double optionalPositive(const std::string &key) const {
    const std::optional<double> value = optionalNumber(object, key, place);
    return value ? inRange(key, *value, false, 0) : 0;
  }

  /// In (0, 1]; 1 if the field is not there.
  double fraction(const std::string &key) const {
    const std::optional<double> value = optionalNumber(object, key, place);
    return value ? inRange(key, *value, false, 1) : 1;
  }

  int64_t count(const std::string &key, int64_t most) const {
    const int64_t value = requireInt(object, key, place);
    if (value < 1 || value > most)
      fail(key, std::to_string(value), "1 to " + std::to_string(most));
    return value;
  }

  std::string text(const std::string &key) const {
    return requireString(object, key, place);
  }

  std::string optionalText(const std::string &key) const {
    return optionalString(object, key, place).value_or("");
  }

  Fields child(const std::string &key,
               std::initializer_list<std::string_view> known) const {
    return {requireObject(object, key, place), place + ": " + key, known};
  }

  bool has(const std::string &key) const {
    return findKey(object, key, place) != nullptr;
  }

private:
  static std::string list(std::initializer_list<std::string_view> names) {
    std::string text;
    for (std::string_view name : names)
      text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }

  [[noreturn]] void fail(const std::string &key, const std::string &value,
                         const std::string &expected) const {
    throw Error(3040, ExitCode::BadInput, "'" + key + "' is " + value, place,
                "expected " + expected);
  }

  /// `most` 0: no limit, but that quotients of numbers stay finite.
  double inRange(const std::string &key, double value, bool zeroAllowed,
                 double most) const {
    const bool isTooSmall = zeroAllowed ? value < 0 : value <= 0;
    if (isTooSmall || value > (most > 0 ? most : 1e30))
      fail(key, digits(value),
           most > 0      ? "more than 0, at most " + digits(most)
           : zeroAllowed ? "0 or more"
                         : "more than 0");
    return value;
  }

  const json &object;
  std::string place;
};

Link linkOf(const Fields &links, const std::string &key, double efficiency) {
  const Fields link = links.child(key, {"latency", "bandwidth"});
  return {link.notNegative("latency"), link.positive("bandwidth") * efficiency};
}

Hardware fromJson(const json &root, const std::string &where) {
  if (!root.is_object())
    throw Error(1205, ExitCode::BadInput,
                "the description is " + describeJson(root) +
                    ", expected an object",
                where);
  const Fields fields(root, where,
                      {"name", "source", "devices_per_node", "memory_bytes",
                       "memory_bandwidth", "launch_overhead",
                       "collective_overhead", "matmul_flops", "kernel_flops",
                       "links", "efficiency"});
  double matmul = 1, kernel = 1, memory = 1, link = 1;
  if (fields.has("efficiency")) {
    const Fields efficiency =
        fields.child("efficiency", {"matmul", "kernel", "memory", "link"});
    matmul = efficiency.fraction("matmul");
    kernel = efficiency.fraction("kernel");
    memory = efficiency.fraction("memory");
    link = efficiency.fraction("link");
  }

  Hardware result;
  result.name = fields.text("name");
  result.source = fields.optionalText("source");
  result.devicesPerNode =
      static_cast<uint32_t>(fields.count("devices_per_node", 1 << 20));
  result.memoryBytes =
      static_cast<uint64_t>(fields.count("memory_bytes", int64_t(1) << 50));
  result.memoryBandwidth = fields.positive("memory_bandwidth") * memory;
  result.launchOverhead = fields.notNegative("launch_overhead");
  result.collectiveOverhead = fields.notNegative("collective_overhead");
  const Fields flops = fields.child("matmul_flops", {"f32", "f64", "bf16"});
  const char *const types[] = {"f32", "f64", "bf16"}; // as in plan::DType
  for (size_t i = 0; i < result.matmulFlops.size(); ++i)
    result.matmulFlops[i] = flops.optionalPositive(types[i]) * matmul;
  result.kernelFlops = fields.positive("kernel_flops") * kernel;
  const Fields links = fields.child("links", {"intra_node", "inter_node"});
  result.intraNode = linkOf(links, "intra_node", link);
  if (links.has("inter_node"))
    result.interNode = linkOf(links, "inter_node", link);
  return result;
}

} // namespace

Hardware parseHardware(std::string_view text, const std::string &where) {
  return fromJson(parseJson(text, where), where);
}

Hardware readHardware(const std::string &path) {
  return fromJson(readJsonFile(path), path);
}

std::string hardwareText(const Hardware &hardware) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["name"] = hardware.name;
  if (!hardware.source.empty())
    json["source"] = hardware.source;
  json["devices_per_node"] = hardware.devicesPerNode;
  json["memory_bytes"] = hardware.memoryBytes;
  json["memory_bandwidth"] = hardware.memoryBandwidth;
  json["launch_overhead"] = hardware.launchOverhead;
  json["collective_overhead"] = hardware.collectiveOverhead;
  static constexpr const char *types[] = {"f32", "f64", "bf16"};
  for (size_t i = 0; i < hardware.matmulFlops.size(); ++i)
    if (hardware.matmulFlops[i] > 0)
      json["matmul_flops"][types[i]] = hardware.matmulFlops[i];
  json["kernel_flops"] = hardware.kernelFlops;
  auto link = [](const Link &value) {
    return Json{{"latency", value.latency}, {"bandwidth", value.bandwidth}};
  };
  json["links"]["intra_node"] = link(hardware.intraNode);
  if (hardware.interNode)
    json["links"]["inter_node"] = link(*hardware.interNode);
  return json.dump(2) + "\n";
}

} // namespace fsdpq::rt
