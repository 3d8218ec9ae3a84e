#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::cluster {

/// What one worker's log is read for: whole lines, in order, and where the log is too far ahead of who shows them, how
/// many are left out. Sans-I/O: told how long the log is and what was read of it. The log itself is the queue, so that
/// nothing but one line and what take_parts() has not taken yet is kept here.
class OutputLines {
 public:
  struct Options {
    std::size_t line_bytes_max = 8 << 10;  ///< What is beyond that of a line is told by its length only.
    std::int64_t behind_max = 8 << 20;     ///< Unread bytes beyond which lines are left out,
    std::int64_t at_end_max = 256 << 10;   ///< and where somebody waits for the last ones.
    std::int64_t shown_after = 64 << 10;   ///< What is shown after those that are left out begins so far from the end.
  };
  /// Lines after those that were left out, each with its line feed.
  struct Part {
    std::uint64_t left_out = 0;
    std::string lines;
  };

  explicit OutputLines(std::int64_t begin) : OutputLines(begin, Options{}) {}
  OutputLines(std::int64_t begin, Options options)
      : options_(options), position_(begin), size_(begin), leave_out_until_(begin) {}

  /// The log has `size` bytes now; `hurry`: somebody waits for the last of them.
  void on_size(std::int64_t size, bool hurry = false);
  /// Where to read next: the next call of take() is of bytes from there.
  std::int64_t position() const { return position_; }
  std::int64_t unread() const { return size_ - position_; }
  /// What is read next is only counted.
  bool leaves_out() const { return leaving_out_; }
  void take(std::string_view bytes);
  /// What was begun is a line, although nothing has ended it: its process has ended, or nobody will see what follows.
  void end_line();

  /// Of what take_parts() gives.
  std::size_t bytes() const { return bytes_; }
  std::vector<Part> take_parts() {
    bytes_ = 0;
    return std::exchange(parts_, {});
  }

 private:
  void add(std::string_view piece);
  void finish_line();
  void finish_leaving_out();
  Part& part();

  Options options_;
  std::int64_t position_;
  std::int64_t size_;
  std::int64_t leave_out_until_;
  bool leaving_out_ = false;
  std::uint64_t left_out_ = 0;  ///< While leaving_out_.
  bool begun_ = false;          ///< A line, whose end has not been read.
  std::string line_;            ///< What is kept of it.
  std::uint64_t cut_ = 0;       ///< And how many bytes are not.
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace paceline::cluster
