/** How long a call waits for work that continues without it. */
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'

export type Waited = 'done' | 'late' | 'cancelled'

export interface WaitLimits {
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  /** Monotonic instant of the call. */
  readonly sinceMs: number
  readonly limitMs: number
  /** Aborted when the client cancels the call. */
  readonly signal: AbortSignal
  /** Called every `everyMs` while it waits. */
  readonly tick?: { readonly everyMs: number; call(): void }
}

/** Waits until the work has ended, the limit has passed, or the call is cancelled. The work itself is not stopped. */
export function waitAtMost(
  work: Promise<unknown>,
  { clock, sinceMs, limitMs, signal, tick }: WaitLimits,
): Promise<Waited> {
  return new Promise((resolve) => {
    const settle = (waited: Waited) => {
      disarm()
      stopTicks()
      forget()
      resolve(waited)
    }
    let disarm = () => {}
    let stopTicks = () => {}
    const arm = () => {
      if (tick === undefined) return
      stopTicks = clock.alarm(tick.everyMs, () => {
        tick.call()
        arm()
      })
    }
    arm()
    disarm = clock.alarm(sinceMs + limitMs - clock.monotonic(), () => settle('late'))
    let forget = () => {}
    forget = onAbort(signal, () => settle('cancelled'))
    work.then(
      () => settle('done'),
      () => settle('done'),
    )
  })
}
