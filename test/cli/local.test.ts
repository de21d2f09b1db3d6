/** `--local` in process: the command line and its own service, with an engine that draws nothing. */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Server, Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { createLocalHome, lines, ONE_PIXEL_PNG, outputOf } from '../support/index.js'
import { claimRun } from '../support/runs.js'
import { openStoreOf, runSql } from '../support/test-database.js'

it('--local --no-wait leaves runs in the queue, also while another one is rendered, until a command waits for them', async () => {
  const { run, file, preview } = createLocalHome()
  const { stdout, stderr } = await run('--local run image "a fox" --no-wait -n 3')
  expect(stderr).toBe('3 runs are queued. Render them with `rushes wait --local --all`.\n')
  outputOf(await run(`run image --local "a hen" -o ${file('hen.png')}`))
  expect(preview.jobs.map(({ input }) => input.prompt)).toEqual(['a hen'])

  // The id is enough: the journal knows where it is.
  const ids = lines(stdout)
  const wanted = ids[1]
  const path = file('fox.png')
  expect(outputOf(await run(`wait ${wanted} -o ${path}`))).toBe(`${path}\n`)
  expect(preview.jobs).toHaveLength(2)
  const states = ids.map((id) => (id === wanted ? `${id}\tsucceeded\t${path}\n` : `${id}\tqueued\t\n`))
  expect(outputOf(await run(`status ${ids.join(' ')}`))).toBe(states.join(''))

  rmSync(path)
  expect(outputOf(await run(`status ${wanted}`))).toBe(`${wanted}\tsucceeded\t\n`)
  expect(outputOf(await run(`download ${wanted} -o ${path}`))).toBe(`${path}\n`)
})

it('wait --local renders the run of a command that was killed when the lease of the run has expired', async () => {
  const { run, home, file } = createLocalHome()
  const id = outputOf(await run('run image --local "a fox" --no-wait')).trim()
  const data = { dataFolder: join(home, 'state', 'local'), databaseUrl: undefined }
  const store = await openStoreOf(data)
  await claimRun(store, 'of the killed command')
  await store.close()
  expect(outputOf(await run(`status ${id}`))).toBe(`${id}\tprocessing\t\n`)
  expect(await run(`wait ${id} --timeout 10s`)).toMatchObject({ code: 11 })
  await runSql(data, 'UPDATE runs SET lease_until = 0')
  outputOf(await run(`wait ${id} -o ${file('fox.png')}`))
})

it('--local opens no socket in run, download, status and batch', async () => {
  const forbidden = () => {
    throw Object.assign(new Error('operation not permitted'), { code: 'EPERM' })
  }
  const sockets = [
    vi.spyOn(Server.prototype, 'listen').mockImplementation(forbidden),
    vi.spyOn(Socket.prototype, 'connect').mockImplementation(forbidden),
  ]
  try {
    const { run, file } = createLocalHome()
    const made = await run(`run image --local "a fox" -o ${file('fox.png')} --json`)
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(file('fox.png'))).toEqual(ONE_PIXEL_PNG)
    const { id } = JSON.parse(made.stdout)
    writeFileSync(file('shots.yaml'), 'runs: [{ name: owl, kind: image, prompt: an owl }]')
    for (const line of [
      `run image --local "at night" -i run:${id} -o ${file('hen.png')}`,
      `download ${id} -o ${file('again.png')}`,
      'status --last',
      `batch --local ${file('shots.yaml')}`,
    ])
      outputOf(await run(line))
    expect(readFileSync(file('owl.png'))).toEqual(ONE_PIXEL_PNG)
    for (const socket of sockets) expect(socket).not.toHaveBeenCalled()
  } finally {
    for (const socket of sockets) socket.mockRestore()
  }
})
