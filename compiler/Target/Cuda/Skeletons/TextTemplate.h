//===- TextTemplate.h - Filling in kernel texts -----------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace fsdpq::cuda {

/// `text` with each `@NAME@` replaced by the value given for NAME. What stands
/// in the values is not looked at again. A name without a value stays as it is,
/// so that NVRTC refuses the text and shows the place.
inline std::string substitute(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t begin = text.find('@');
    size_t end = begin == text.npos ? text.npos : text.find('@', begin + 1);
    if (end == text.npos)
      break;
    std::string_view name = text.substr(begin + 1, end - begin - 1);
    result += text.substr(0, begin);
    const std::string *value = nullptr;
    for (const auto &[known, with] : values)
      if (known == name)
        value = &with;
    if (value) {
      result += *value;
      text.remove_prefix(end + 1);
    } else { // the second @ may begin another name
      result += text.substr(begin, end - begin);
      text.remove_prefix(end);
    }
  }
  return result.append(text);
}

/// A float literal of CUDA C++ that reads back as `value` rounded to f32.
inline std::string floatLiteral(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9ef", static_cast<float>(value));
  return buffer;
}

} // namespace fsdpq::cuda
