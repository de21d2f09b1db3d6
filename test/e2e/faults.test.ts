/** Faults over a real port against the real program. By table: test/cli/faults.test.ts. */
import { expect, it } from 'vitest'
import { rushes, start } from '../support/binary.js'
import { personAt, quickEngines, serveQuickly } from '../support/quick-service.js'

const RUN = ['run', 'image', 'a fox']

it.concurrent('serve --fault reports each injected fault as JSON, and closes stalled requests when it ends', async () => {
  const service = await serveQuickly([
    ...quickEngines(),
    '--fault',
    'create:lose:1',
    '--fault',
    'create:stall',
  ])
  const said = (message: string) => JSON.stringify({ warning: { message: `fault: create ${message}` } })
  const lost = await rushes(service, RUN)
  expect({ code: lost.code, stdout: lost.stdout }).toEqual({ code: 13, stdout: '' })
  expect(lost.stderr).toContain('A run may exist and cost money')
  const waiting = start(await personAt(service), RUN, { stdin: 'ignore' })
  await service.process.prints('stderr', /stalled/)
  service.process.kill('SIGTERM')
  const { code, stderr } = await service.process.ended
  expect({ code, stderr: stderr.trim().split('\n') }).toEqual({
    code: 0,
    stderr: [said('lost its response after the service acted'), said('stalled without a response')],
  })
  expect((await waiting.ended).code).toBe(13)
})
