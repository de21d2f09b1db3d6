/** Whether the list moves so fast that rows only pass by. */

/** In pixels per millisecond: some 30 rows a second. */
const FAST = 2
/** After the last movement. */
export const SETTLED_MS = 150

let last = { atMs: 0, top: 0 }
let speed = 0

export function noteScroll(): void {
  const now = { atMs: performance.now(), top: scrollY }
  speed = Math.abs(now.top - last.top) / Math.max(1, now.atMs - last.atMs)
  last = now
}

export const isPassing = (): boolean => speed > FAST && performance.now() - last.atMs < SETTLED_MS
