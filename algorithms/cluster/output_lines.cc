#include "algorithms/cluster/output_lines.h"

#include <algorithm>

#include "runtime/base/readable.h"

namespace paceline::cluster {

void OutputLines::on_size(std::int64_t size, bool hurry) {
  if (size < size_) position_ = leave_out_until_ = size;  // Somebody has cut the log off.
  size_ = size;
  if (unread() <= (hurry ? options_.at_end_max : options_.behind_max)) return;
  leaving_out_ = true;
  leave_out_until_ = size_ - options_.shown_after;
}

void OutputLines::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    add(piece);
    position_ += static_cast<std::int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
    if (end == std::string_view::npos) break;
    ++position_;
    bytes.remove_prefix(1);
    finish_line();
  }
  size_ = std::max(size_, position_);
}

void OutputLines::add(std::string_view piece) {
  begun_ = begun_ || !piece.empty();
  if (leaving_out_) return;
  const auto kept = std::min(piece.size(), options_.line_bytes_max - line_.size());
  line_ += piece.substr(0, kept);
  cut_ += piece.size() - kept;
}

void OutputLines::finish_line() {
  begun_ = false;
  if (leaving_out_) {
    ++left_out_;
    if (position_ >= leave_out_until_) finish_leaving_out();
    return;
  }
  if (cut_ > 0) {
    const auto shown = first_of(line_, options_.line_bytes_max - 1).size();  // No half of a character.
    cut_ += line_.size() - shown;
    line_.resize(shown);
    line_ += " ... (" + std::to_string(cut_) + " more bytes)";
  } else if (line_.ends_with('\r')) {
    line_.pop_back();
  }
  line_ += '\n';
  part().lines += line_;
  bytes_ += line_.size();
  line_.clear();
  cut_ = 0;
}

void OutputLines::end_line() {
  if (begun_) finish_line();
  if (leaving_out_) finish_leaving_out();
}

void OutputLines::finish_leaving_out() {
  leaving_out_ = false;
  line_.clear();  // What had begun when it was decided was left out, too.
  cut_ = 0;
  if (left_out_ > 0) parts_.push_back({std::exchange(left_out_, 0), {}});
}

OutputLines::Part& OutputLines::part() {
  if (parts_.empty()) parts_.emplace_back();
  return parts_.back();
}

}  // namespace paceline::cluster
