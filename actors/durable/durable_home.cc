#include "actors/durable/durable_home.h"

namespace paceline::actors {
namespace {

thread_local DurableHome* home_of_thread = nullptr;

}  // namespace

DurableHome* durable_home() { return home_of_thread; }
void set_durable_home(DurableHome* home) { home_of_thread = home; }

}  // namespace paceline::actors
