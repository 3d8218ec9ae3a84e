#include "actors/resumer.h"

namespace paceline::actors {
namespace {
thread_local Resumer* current = nullptr;
}  // namespace

Resumer* resumer() { return current; }
void set_resumer(Resumer* given) { current = given; }

}  // namespace paceline::actors
