#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "runtime/observe/progress.h"

namespace paceline::observe {
namespace {

constexpr Duration kRedrawEvery = std::chrono::milliseconds(100);
constexpr std::size_t kWidthUnknown = 80;

/// Progress is for people to look at: an output that is closed or full must not stop a run.
void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Size {
  std::size_t columns, rows;
};

Size terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0) return {kWidthUnknown, 24};
  return {size.ws_col, size.ws_row};
}

std::string with_newline(const std::string& text) { return text.empty() || text.back() != '\n' ? text + '\n' : text; }

}  // namespace

LiveBlock::LiveBlock(int fd) : fd_(fd) {
  const char* no_color = std::getenv("NO_COLOR");
  color_ = !no_color || !*no_color;
}

void LiveBlock::put(const std::string& bytes) const { write_all(fd_, bytes); }

std::string LiveBlock::erase() const { return lines_ ? "\x1b[" + std::to_string(lines_) + "A\r\x1b[J" : ""; }

void LiveBlock::draw(const RunView& view) {
  const Size size = terminal_size(fd_);
  auto lines = render(view, size.columns - 1, color_);  // A full line would wrap on some terminals.
  if (size.rows > 1 && lines.size() > size.rows - 1)
    lines.resize(size.rows - 1);  // What scrolled away cannot be erased.
  std::string bytes = erase();
  for (const std::string& line : lines) bytes += line + '\n';
  put(bytes);
  lines_ = lines.size();
}

void LiveBlock::show(const RunView& view, Instant now) {
  last_ = view;
  if (drawn_ && now - *drawn_ < kRedrawEvery) return;
  drawn_ = now;
  draw(view);
}

void LiveBlock::print(const std::string& text) {
  put(erase() + with_newline(text));
  lines_ = 0;
  if (last_) draw(*last_);
}

void LiveBlock::finish(const RunView& view) {
  draw(view);
  lines_ = 0;
  last_.reset();
  drawn_.reset();
}

void PlainLines::show(const RunView& view, Instant now) {
  if (shown_ && now - *shown_ < every_) return;
  shown_ = now;
  print(render_line(view));
}

void PlainLines::print(const std::string& text) { write_all(fd_, with_newline(text)); }
void PlainLines::finish(const RunView& view) { print(render_line(view)); }

bool is_live_terminal(int fd) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) && terminal && *terminal && std::string_view(terminal) != "dumb";
}

}  // namespace paceline::observe
