/** `--local` in process: the command line and its own service, with an engine that draws nothing. */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Server, Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import {
  type CommandLine,
  createInstantEngine,
  ONE_PIXEL_PNG,
  openStoreOf,
  runCli,
  temporaryFolder,
} from '../support/index.js'
import { claimRun } from '../support/runs.js'
import { runSql } from '../support/test-database.js'

it('leaves runs of --no-wait in the queue, also while it renders another one, until a command waits for them', async () => {
  const home = temporaryFolder()
  const engine = createInstantEngine()
  const run = (line: CommandLine) => runCli(line, { home, engine })
  const { stdout, stderr } = await run('--local run image "a fox" --no-wait -n 3')
  const ids = stdout.trim().split('\n')
  expect(stderr).toBe('3 runs are queued. Render them with `rushes wait --local --all`.\n')
  expect(await run(['run', 'image', '--local', 'a hen', '-o', join(home, 'hen.png')])).toMatchObject({
    code: 0,
  })
  expect(engine.jobs.map(({ input }) => input.prompt)).toEqual(['a hen'])
  expect((await run(['status', ...ids])).stdout).toBe(ids.map((id) => `${id}\tqueued\t\n`).join(''))

  // The id is enough: the journal knows where it is.
  const [, wanted = ''] = ids
  const path = join(home, 'fox.png')
  expect(await run(`wait ${wanted} -o ${path}`)).toMatchObject({ code: 0, stdout: `${path}\n` })
  expect(engine.jobs).toHaveLength(2)
  const states = ids.map((id) => (id === wanted ? `${id}\tsucceeded\t${path}\n` : `${id}\tqueued\t\n`))
  expect((await run(['status', ...ids])).stdout).toBe(states.join(''))

  // Without the download, the file of the service itself.
  rmSync(path)
  const { files } = JSON.parse((await run(`status ${wanted} --json`)).stdout)
  expect(files).toMatchObject([
    { path: expect.stringMatching(/\/local\/files\//), content_type: 'image/png' },
  ])
  expect(existsSync(files[0].path)).toBe(true)
})

it('a command renders the run of one that was killed when its lease has run out', async () => {
  const home = temporaryFolder()
  const run = (line: string) => runCli(line, { home, engine: createInstantEngine() })
  const id = (await run('run image --local "a fox" --no-wait')).stdout.trim()
  const data = { dataFolder: join(home, 'state', 'local'), databaseUrl: undefined }
  const store = await openStoreOf(data)
  await claimRun(store, 'of the killed command')
  await store.close()
  expect((await run(`status ${id}`)).stdout).toBe(`${id}\tprocessing\t\n`)
  expect(await run(`wait ${id} --timeout 10s`)).toMatchObject({ code: 11 })
  await runSql(data, 'UPDATE runs SET lease_until = 0')
  const path = join(home, 'fox.png')
  expect(await run(`wait ${id} -o ${path}`)).toMatchObject({ code: 0, stdout: `${path}\n` })
})

it('works where sockets are forbidden: nothing is listened on, and nothing is connected to', async () => {
  const forbidden = () => {
    throw Object.assign(new Error('operation not permitted'), { code: 'EPERM' })
  }
  const sockets = [
    vi.spyOn(Server.prototype, 'listen').mockImplementation(forbidden),
    vi.spyOn(Socket.prototype, 'connect').mockImplementation(forbidden),
  ]
  try {
    const home = temporaryFolder()
    const engine = createInstantEngine()
    const run = (line: CommandLine) => runCli(line, { home, engine })
    const [fox, hen] = [join(home, 'fox.png'), join(home, 'hen.png')]
    const made = await run(['run', 'image', '--local', 'a fox', '-o', fox, '--json'])
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(fox)).toEqual(ONE_PIXEL_PNG)
    const { id } = JSON.parse(made.stdout)
    expect(await run(['run', 'image', '--local', 'at night', '-i', `run:${id}`, '-o', hen])).toMatchObject({
      code: 0,
    })
    expect(await run(['download', id, '-o', join(home, 'again.png')])).toMatchObject({ code: 0 })
    expect((await run('status --last')).stdout).toContain('succeeded')
    writeFileSync(join(home, 'shots.yaml'), 'runs: [{ name: owl, kind: image, prompt: an owl }]')
    expect(await run(['batch', '--local', join(home, 'shots.yaml')])).toMatchObject({ code: 0 })
    expect(readFileSync(join(home, 'owl.png'))).toEqual(ONE_PIXEL_PNG)
    for (const socket of sockets) expect(socket).not.toHaveBeenCalled()
  } finally {
    for (const socket of sockets) socket.mockRestore()
  }
})
