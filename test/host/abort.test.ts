/** Many wait for one signal, and it has one listener. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { onAbort } from '../../src/host/abort.js'

describe('onAbort', () => {
  it('calls everybody who is still waiting, once, in their order', () => {
    const controller = new AbortController()
    const called: number[] = []
    const offs = Array.from({ length: 20 }, (_, at) => onAbort(controller.signal, () => called.push(at)))
    for (const off of offs.slice(2, 18)) off()
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort()
    expect(called).toEqual([0, 1, 18, 19])
    for (const off of offs) off()
    controller.abort()
    expect(called).toEqual([0, 1, 18, 19])
  })

  it('tells two who hand in the same function apart', () => {
    const controller = new AbortController()
    let calls = 0
    const call = () => calls++
    const off = onAbort(controller.signal, call)
    onAbort(controller.signal, call)
    off()
    controller.abort()
    expect(calls).toBe(1)
  })

  it('is called by nobody without a signal', () => onAbort(undefined, () => expect.unreachable())())
})
