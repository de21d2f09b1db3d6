/** Runs that succeed without a file: often the service has withheld it (moderation). */
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createFamily } from '../support/family.js'
import { type CliService, createCliService, outputOf, scripted, usageErrorOf } from '../support/index.js'

const WITHHELD = { status: 'Succeeded', output: { urls: [] }, error: { message: 'blocked by moderation' } }

/** Answers status requests without URLs: all, or the first `times`. */
function withholding({ counting }: Pick<CliService, 'counting'>, times = Number.POSITIVE_INFINITY) {
  const ids: string[] = []
  const fetch: Fetch = async (request) => {
    const id = /\/runs\/(.+)$/.exec(request.url.pathname)?.[1]
    if (request.method !== 'GET' || id === undefined || ids.length >= times) return counting(request)
    ids.push(id)
    return scripted({ status: 200, body: WITHHELD }).fetch(request)
  }
  return { fetch, ids }
}

it('a run that succeeded without URLs ends with exit 8 after three more requests, and nothing waits for it again', async () => {
  const service = await createCliService()
  const { fetch, ids } = withholding(service)
  const { code, stderr } = await service.run('run image "a fox"', { fetch })
  expect([code, ids.length]).toEqual([8, 4])
  expect(stderr).toMatch(
    /^error: run_\w+: The run ended \(Succeeded\) without a file: output\.urls is empty\./m,
  )
  expect(stderr).toContain('The service says: blocked by moderation')
  expect(stderr).not.toMatch(/Resume with/)
  const [id = ''] = ids
  const [row] = service.rows()
  expect(row).toMatchObject({ id, phase: 'succeeded', status: 'Succeeded', urls: [] })
  expect(JSON.parse(row?.answer?.text ?? '')).toEqual(WITHHELD)
  expect(outputOf(await service.run('list'))).toContain(`${id}\tSucceeded\t`)
  expect((await service.run('wait --all', { fetch })).stderr).toContain('No unfinished runs')
  expect((await service.run(`wait ${id}`, { fetch })).code).toBe(8)
  expect(ids).toHaveLength(5)
})

it('a run that succeeded without URLs has ended in the journal, also when a time limit ends the wait for its URLs', async () => {
  const service = await createCliService()
  const { fetch } = withholding(service)
  const { code, stderr } = await service.run('run image "a fox" --timeout 2s', { fetch })
  expect(code).toBe(8)
  expect(stderr).not.toContain('still running')
  expect(service.rows()).toMatchObject([{ phase: 'succeeded', error: { code: 'bad_response' } }])
})

it('a run whose URLs are late succeeds, and has no error in the journal', async () => {
  const service = await createCliService()
  const { fetch } = withholding(service, 2)
  const { code, stdout } = await service.run('run image "a fox"', { fetch })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^http\S+\n$/)])
  const row = { phase: 'succeeded', urls: [stdout.trim()], error: undefined, answer: undefined }
  expect(service.rows()).toMatchObject([row])
})

it('status and download of a run that succeeded without URLs end with exit 8, and status --json prints its object', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await service.create()
  const { fetch } = withholding(service)
  const { code, stdout } = await service.run(`status ${id} --json`, { fetch })
  expect(code).toBe(8)
  expect(JSON.parse(stdout)).toMatchObject({
    id,
    status: 'Succeeded',
    error: { code: 'bad_response' },
    service: WITHHELD,
  })
  expect(service.rows()).toMatchObject([{ phase: 'succeeded' }])
  expect((await service.run(`download ${id}`, { fetch })).code).toBe(8)
})

it('a run that succeeded without URLs cannot be a reference', async () => {
  const service = await createCliService()
  const { fetch, ids } = withholding(service)
  await service.run('run image "a fox"', { fetch })
  const used = await service.run(`run image "a hen" -i run:${ids[0]}`, { fetch })
  expect(usageErrorOf(used)).toContain('without a file')
})

it('a run of a batch that succeeded without URLs is requested once by the next batch, and created again only with --only and --force', async () => {
  const batch = await createFamily([{ name: 'fox', prompt: 'a fox' }])
  const { fetch, ids } = withholding(batch.service)
  const first = await batch.run([], { fetch })
  expect([first.code, batch.created()]).toEqual([8, ['a fox']])
  expect(first.stderr).toMatch(/To create it again and pay again: `rushes batch \S+ --only fox --force`/)
  const asked = ids.length
  expect((await batch.run([], { fetch })).code).toBe(8)
  expect([batch.created(), ids.length]).toEqual([[], asked + 1])
  outputOf(await batch.run('--only fox --force'))
  expect(batch.created()).toEqual(['a fox'])
})
