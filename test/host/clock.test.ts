/** The clock of the machine, in real milliseconds. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { listen } from '../support/index.js'

const ALARM_MS = 20

/** Stops the whole process, event loop included, as a suspension does. */
const blockPast = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms * 3)

async function socketPair(): Promise<readonly [Socket, Socket]> {
  const server = createServer()
  const near = connect(await listen(server), '127.0.0.1')
  const [[far]] = await Promise.all([once(server, 'connection'), once(near, 'connect')])
  onTestFinished(() => void near.destroy())
  return [near, far]
}

it('an alarm that is due lets the sockets be read first, and can still be disarmed', async () => {
  const [near, far] = await socketPair()
  const events: string[] = []
  const disarm = systemClock.alarm(ALARM_MS, () => events.push('alarm'))
  const other = new Promise<void>((resolve) => {
    systemClock.alarm(ALARM_MS, () => {
      events.push('other alarm')
      resolve()
    })
  })
  near.on('data', () => {
    events.push('read')
    disarm()
  })
  far.write('the answer')
  blockPast(ALARM_MS)
  await other
  expect(events).toEqual(['read', 'other alarm'])
})

it('waits for longer than a timer of Node can', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const days = (count: number) => count * 86_400_000
  const events: string[] = []
  const slept = systemClock.sleep(days(60)).then(() => events.push('slept'))
  systemClock.alarm(days(60), () => events.push('alarm'))
  systemClock.alarm(days(60), () => events.push('disarmed'))()
  await vi.advanceTimersByTimeAsync(days(60) - 1)
  expect(events).toEqual([])
  await vi.advanceTimersByTimeAsync(2)
  await slept
  expect(events.sort()).toEqual(['alarm', 'slept'])
})
