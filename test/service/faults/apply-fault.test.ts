import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { applyFault, ConnectionReset } from '../../../src/service/faults/apply-fault.js'
import { parseFault } from '../../../src/service/faults/grammar.js'
import { createManualClock } from '../../support/clock.js'

test.each([
  ['output:truncate:0', ''],
  ['output:truncate:3', 'abc'],
  ['output:reset:0', ''],
  ['output:reset:3', 'abc'],
])('%s closes the file behind the response', async (spec, sent) => {
  const { effect } = parseFault(spec)
  const stream = Readable.from([Buffer.from('abcdef')])
  const answer = { status: 200, headers: { 'content-length': '6' }, body: stream, discard() {} }
  const exchange = {
    signal: new AbortController().signal,
    ask: async () => answer,
    readUpload: async () => {},
  }
  const matching = { effect, delays: [], pace: undefined } as Parameters<typeof applyFault>[0]
  const outcome = await applyFault(matching, 'output', exchange, createManualClock())
  if (outcome.kind !== 'answer') expect.unreachable()
  let text = ''
  try {
    for await (const chunk of outcome.answer.body) text += Buffer.from(chunk).toString()
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectionReset)
  }
  expect([text, stream.destroyed]).toEqual([sent, true])
})
