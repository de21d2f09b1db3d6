import { expect, test } from 'vitest'
import { createWhenDiskHasSpace } from '../../src/cli/context/wait-for-space.js'
import { usageError } from '../../src/errors.js'
import { createManualClock } from '../support/clock.js'

function tried(failures: readonly Error[]) {
  const warnings: string[] = []
  const clock = createManualClock()
  const interrupt = new AbortController()
  let calls = 0
  const create = async () => {
    const failure = failures[calls++]
    if (failure !== undefined) throw failure
    return 'a service'
  }
  const context = {
    out: { warn: (text: string) => void warnings.push(text) },
    clock,
    interrupts: { first: interrupt.signal },
  } as unknown as Parameters<typeof createWhenDiskHasSpace>[0]
  const service = createWhenDiskHasSpace(context, create, { dataFolder: '/data' })
  return { service, warnings, clock, interrupt, calls: () => calls }
}

const withCause = (code: string) =>
  Object.assign(usageError('cannot be used'), { cause: Object.assign(new Error('full'), { code }) })

test('a service on a full disk starts when there is space, and says once that it waits', async () => {
  const { service, warnings, clock, calls } = tried([withCause('SQLITE_FULL'), withCause('ENOSPC')])
  expect(await clock.runUntil(service)).toBe('a service')
  expect(calls()).toBe(3)
  expect(warnings).toEqual(['The disk of /data is full. The service starts when there is space.'])
})

test('other failures end the start at once', async () => {
  for (const code of ['SQLITE_CORRUPT', 'SQLITE_IOERR', 'EACCES']) {
    const { service, warnings } = tried([withCause(code)])
    await expect(service).rejects.toThrow('cannot be used')
    expect(warnings).toEqual([])
  }
})

test('Ctrl-C ends the waiting', async () => {
  const { service, interrupt } = tried([withCause('ENOSPC')])
  const reason = new Error('interrupted')
  interrupt.abort(reason)
  await expect(service).rejects.toBe(reason)
})
