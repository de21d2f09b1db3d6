/** `--local`: the whole way from a prompt to a picture, without a key, a network or a set-up. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import {
  createPlace,
  filesBelow,
  lines,
  processesOf,
  runCli,
  rushes,
  start,
  until,
  withStateOfCli,
} from '../support/index.js'

const RENDERER = /renderer\.cjs/
const FOX = ['run', 'image', '--local', 'a fox']

it.concurrent('run image --local renders for each of two processes with one state folder a picture of the requested size, and keeps its data private', async () => {
  const place = createPlace()
  const words = [...FOX, '--aspect-ratio', '16:9']
  const both = await Promise.all([rushes(place, words), rushes(place, words)])
  expect(both.map(({ code }) => code)).toEqual([0, 0])
  for (const { stdout } of both) expect(stdout).toMatch(/^run_\w+\.png\n$/)
  const paths = both.map(({ stdout }) => stdout.trim())
  expect(filesBelow(place.folder)).toEqual([...new Set(paths)].sort())
  const pictures = paths.map((path) => readFileSync(join(place.folder, path)))
  for (const bytes of pictures) {
    expect(bytes.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a')
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1376, 774])
  }
  // Each run is a picture of its own.
  expect(pictures[0]).not.toEqual(pictures[1])

  const state = join(place.home, '.local', 'state', 'rushes')
  const open = '( -type d ! -perm 0700 ) -o ( -name *.db* ! -perm 0600 )'.split(' ')
  expect((await promisify(execFile)('find', [state, ...open])).stdout).toBe('')
  expect(filesBelow(state)).toContain('local/service.db')
})

/** Videos, so that the signal comes while they are rendered. */
it.concurrent('run video --local leaves its runs in the queue and no renderer after SIGTERM', async () => {
  const place = withStateOfCli(createPlace())
  const command = start(place, ['run', 'video', '--local', '-n', '2', 'a boat'])
  await command.prints('stderr', /processing/)
  command.kill('SIGTERM')
  const { signal, stderr } = await command.ended
  expect(signal).toBe('SIGTERM')
  expect(stderr).toMatch(
    /^ {2}Resume with `rushes wait --local run_\w+ run_\w+`\. Stop them with `rushes cancel --local run_\w+ run_\w+`\.$/m,
  )
  expect(lines((await runCli('list --status queued', { home: place.home })).stdout)).toHaveLength(2)
  await until('the end of the renderers', () => processesOf(place, RENDERER).length === 0 || undefined)
})

// That the next command takes the run over: test/cli/local.test.ts.
it.concurrent('run video --local leaves its run, no renderer and no file when it is killed', async () => {
  const place = withStateOfCli(createPlace())
  const killed = start(place, ['run', 'video', '--local', 'a fox'])
  const [, id = ''] = await killed.prints('stderr', /(run_\w+): processing/)
  await until('a renderer', () => processesOf(place, RENDERER).length > 0 || undefined)
  killed.kill('SIGKILL')
  expect(await killed.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' })
  await until('the end of the renderer', () => processesOf(place, RENDERER).length === 0 || undefined)
  expect(filesBelow(place.folder)).toEqual([])
  // Its lease runs out first.
  expect((await runCli(`status ${id} --local`, { home: place.home })).stdout).toBe(`${id}\tprocessing\t\n`)
})
