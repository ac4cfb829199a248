// What targets/tofino uses of the Tofino 2 Native Architecture, in our own words and for the same readers as
// tna.p4: what differs there, and registers.

#ifndef T2NA_P4
#define T2NA_P4

#include "tna.p4"

// As PSA declares it, so that p4c's P4Info of PSA finds cells and size.
extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
}

// What is done in the one access to a register that a frame has in a pass. `execute` returns the first
// output; the others come by parameters.
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    abstract void apply(inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3,
                        @optional out U rv4);
}

extern RegisterAction2<T, I, U1, U2> {
    RegisterAction2(Register<_, _> reg);
    U1 execute(in I index, out U2 rv2);
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
}

extern RegisterAction3<T, I, U1, U2, U3> {
    RegisterAction3(Register<_, _> reg);
    U1 execute(in I index, out U2 rv2, out U3 rv3);
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
}

extern RegisterAction4<T, I, U1, U2, U3, U4> {
    RegisterAction4(Register<_, _> reg);
    U1 execute(in I index, out U2 rv2, out U3 rv3, out U4 rv4);
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
}

#endif
