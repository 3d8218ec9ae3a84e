#include "algorithms/simulate/strict_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;

constexpr std::size_t kRepeatedMax = 160;  // Of the text that an error repeats.

std::string shortened(const std::string& text) {
  std::string kept = text.substr(0, kRepeatedMax);
  if (text.size() > kRepeatedMax) {
    kept += "...";
  }
  return kept;
}

/// "line 3, column 7: ..." out of the library's "[json.exception.parse_error.101] parse error at line 3, column 7:
/// ...".
std::string in_words(const std::string& what) {
  const std::size_t at = what.find("line ");
  return "malformed JSON at " + shortened(printable(at == std::string::npos ? what : what.substr(at)));
}

/// Builds the value and knows where it is.
class Builder final : public nlohmann::json_sax<json> {
 public:
  json root;
  std::string error;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const bool is_new = !open_.back()->contains(name);
    key_ = std::move(name);
    if (!is_new) error = path() + ": is there twice; give it once";
    return is_new;
  }

  bool parse_error(std::size_t, const std::string& token, const json::exception& what) override {
    error = what.id == 406
                ? path() + ": " + shortened(printable(token)) + " is too large for a number; give one below 1e308"
                : in_words(what.what());
    return false;
  }

 private:
  /// Where the value that comes next stands: "problem.workers[2].a[1]".
  std::string path() const {
    std::string text;
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (open_[k]->is_array()) {
        const std::size_t size = open_[k]->size();
        text += "[" + std::to_string(k + 1 < open_.size() ? size - 1 : size) + "]";
      } else {
        text += (text.empty() ? "" : ".") + shortened(printable(k + 1 < open_.size() ? keys_[k] : key_));
      }
    }
    return text.empty() ? "the file" : text;
  }

  json* insert(json value) {
    if (open_.empty()) return &(root = std::move(value));
    json& parent = *open_.back();
    if (!parent.is_array()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool put(json value) { return insert(std::move(value)) != nullptr; }

  bool open(json container) {
    if (open_.size() == kNestingMax) {
      error = path() + ": is nested deeper than " + std::to_string(kNestingMax) + " levels";
      return false;
    }
    if (!open_.empty()) keys_.push_back(key_);
    open_.push_back(insert(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    if (!keys_.empty()) keys_.pop_back();
    return true;
  }

  std::vector<json*> open_;        // From the root to the value that is being filled.
  std::vector<std::string> keys_;  // keys_[k]: the member of open_[k] that open_[k + 1] is.
  std::string key_;
};

}  // namespace

std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

Result<json> parse_strict(std::string_view text) {
  Builder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  return fail(ErrorKind::invalid, builder.error);
}

}  // namespace paceline::simulate
