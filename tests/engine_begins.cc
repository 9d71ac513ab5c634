// The linker puts this object right before the engine, which comes last, so the code from here to
// etext is the engine's. allocation_hook.cc uses these bounds to find out which code allocates.
extern "C" void rhizome_engine_begins() {}
