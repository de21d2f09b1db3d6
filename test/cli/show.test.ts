/** `rushes show`: what the journal knows of one run. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  addRow,
  createCliService,
  createHome,
  LOOPBACK_URL,
  lines,
  ONE_PIXEL_PNG,
  outputOf,
  SET,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

it('show prints the details of a run, tab-separated in a pipe', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run(['run', 'image', 'a\nfox', '--quality', 'high', '-o', path])
  const id = service.rows()[0]?.id
  const { code, stdout, stderr } = await service.run('show --last')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(lines(stdout).map((line) => line.split('\t'))).toEqual([
    ['run', id],
    ['status', 'succeeded'],
    ['where', LOOPBACK_URL],
    ['profile', 'default'],
    ['kind', 'image'],
    ['model', 'rushes/preview-image'],
    ['prompt', 'a fox'],
    ['quality', 'high'],
    ['seed', expect.stringMatching(/^\d+$/)],
    ['created', expect.stringMatching(/Z$/)],
    ['finished', expect.stringMatching(/Z$/)],
    ['elapsed', expect.stringMatching(/^\d\.\d s$/)],
    ['file', `${path} (${ONE_PIXEL_PNG.byteLength} B, image/png)`],
    ['url', expect.stringMatching(/^http/)],
  ])
  rmSync(path)
  expect(outputOf(await service.run(`show ${id}`))).toContain(`file\t${path} (moved, changed or deleted)\n`)
  const table = await service.run(`show ${id}`, { tty: { stdout: true } })
  expect(table.stdout).toMatch(/^run {7}run_\w+$/m)
  expect(table.stdout).toMatch(/^created {3}\S+Z \(.*\)$/m)
})

it('show prints an elapsed time between create and end, also of a run that no command waited for', async () => {
  const service = await createCliService()
  const [id] = await service.create()
  await service.clock.advance(120_000)
  await service.run(`status ${id}`)
  const { stdout } = await service.run(`show ${id}`)
  const [created, finished] = ['created', 'finished'].map((name) =>
    Date.parse(new RegExp(`^${name}\t(\\S+)$`, 'm').exec(stdout)?.[1] ?? ''),
  )
  const seconds = ((finished as number) - (created as number)) / 1_000
  expect(seconds).toBeLessThan(60)
  expect(stdout).toContain(`elapsed\t${seconds.toFixed(1)} s\n`)
})

it('show takes a key, and prints the response of a create whose outcome is unknown', async () => {
  const { run, rows } = createHome({ answers: [{ status: 500, body: 'oh no' }] })
  await run('run image "a fox"')
  const key = rows()[0]?.key ?? ''
  for (const name of [key, key.slice(1)]) {
    const stdout = outputOf(await run(['show', name], { env: {} }))
    expect(stdout).toContain(`run\t${key}\nstatus\tunconfirmed\n`)
    expect(stdout).toContain('response\t500 oh no\n')
  }
})

it('show finds a run at any address and says where it is, and is a usage error for one that is not in the journal', async () => {
  const { home, run } = createHome({ env: {} })
  const input = { style: { image_url: 'data:image/png;base64,AAAA', weight: 1 } }
  addRow(home, { id: 'r1', address: 'https://a.example', input })
  addRow(home, { id: 'r2', address: 'local' })
  const { stdout } = await run('show r1')
  expect(stdout).toContain('where\thttps://a.example\n')
  expect(stdout).toMatch(/style\t\{"image_url":"image\/png, 3 B, sha256 [0-9a-f]{64}","weight":1\}\n/)
  expect(outputOf(await run('show r2', { env: SET }))).toContain('where\tlocal\n')
  usageErrorOf(await run('show r1 --local'))
  expect(usageErrorOf(await run('show r9'))).toContain('error: r9 is not in the journal.')
})
