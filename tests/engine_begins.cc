// Linked right before the engine, and that last, so that the code from here to etext is the
// engine's: allocation_hook.cc tells by it who asks for memory.
extern "C" void rhizome_engine_begins() {}
