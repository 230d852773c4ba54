// Loaded into a service before its own code: at each SIGUSR2 its wall clock jumps by CLOCK_SHIFT_MS, and back at the next. Timers go on as they did.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0);
let shifted = false;
const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...parts) {
    if (parts.length > 0) super(...parts);
    else super(ShiftedDate.now());
  }

  static now() {
    return RealDate.now() + (shifted ? shiftMs : 0);
  }
}

globalThis.Date = ShiftedDate;
process.on('SIGUSR2', () => {
  shifted = !shifted;
});
