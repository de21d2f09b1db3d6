/** How commands name runs: by id, by its beginning, by the key of a row, or by a file. */
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService, runCli, SET } from '../support/cli.js'
import { addRow, rowsOf } from '../support/journal.js'
import { responseOf } from '../support/responses.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** A service that knows every run, and the ids that it was asked for. */
function createEchoService() {
  const asked: string[] = []
  const fetch = async ({ url }: { readonly url: URL }) => {
    const id = decodeURIComponent(url.pathname.replace(/\/cancel$/, '').replace(/^.*\//, ''))
    asked.push(id)
    return responseOf({ status: 200, body: { id, status: 'canceled' } })
  }
  return { fetch, asked }
}

describe('the beginning of an id', () => {
  const home = temporaryFolder()
  for (const id of ['run_abc1', 'run_abc2', 'run_xyz', 'run_x']) addRow(home, { id })

  it.each(['status', 'cancel', 'wait', 'download', 'open', 'show', 'forget'])(
    'names the run for %s if only one run begins so',
    async (command) => {
      const copy = temporaryFolder()
      for (const { id = '' } of rowsOf(home)) addRow(copy, { id })
      const { fetch, asked } = createEchoService()
      const words = command === 'forget' ? ['--yes'] : []
      const ran = await runCli([command, 'run_xy', ...words], { home: copy, env: SET, fetch })
      expect(`${ran.stdout}${ran.stderr}`).toContain('run_xyz')
      expect(new Set(asked)).toEqual(new Set(['open', 'show', 'forget'].includes(command) ? [] : ['run_xyz']))
    },
  )

  it('is exit 2 with the matches if several runs begin so', async () => {
    for (const command of ['status', 'show'])
      expect(await runCli(`${command} run_abc`, { home, env: SET })).toMatchObject({
        code: 2,
        stderr:
          'error: 2 runs of the journal begin with run_abc: run_abc2, run_abc1.\n' +
          '  Give more characters of the id.\n',
      })
  })

  it('is worth less than a whole id', async () => {
    expect((await runCli('show run_x', { home })).stdout).toMatch(/^run\trun_x\n/)
  })

  it('names no run where it may be the id of another one, as of a service that counts', async () => {
    for (const ids of [['12345'], ['12345', '12346'], ['2026-11-12345']]) {
      const counted = temporaryFolder()
      for (const id of ids) addRow(counted, { id })
      const { fetch, asked } = createEchoService()
      const other = ids[0]?.slice(0, -1) ?? ''
      expect((await runCli(`cancel ${other}`, { home: counted, env: SET, fetch })).code).toBe(0)
      expect(asked).toEqual([other])
      const forget = await runCli(`forget ${other} --yes`, { home: counted })
      expect(forget).toMatchObject({ code: 2, stderr: expect.stringContaining('is not in the journal') })
    }
  })

  it('has at least four characters', async () => {
    const other = temporaryFolder()
    addRow(other, { id: 'abcdef' })
    expect((await runCli('show abc', { home: other })).stderr).toContain('abc is not in the journal')
    expect((await runCli('show abcd', { home: other })).stdout).toMatch(/^run\tabcdef\n/)
  })

  it('counts for ids on standard input, and an id that the journal does not know is asked of the service', async () => {
    const { fetch, asked } = createEchoService()
    const options = { home, env: SET, fetch, stdin: 'run_xy\nrun_new\nrun_xyz\n' }
    expect((await runCli('status -', options)).stdout).toBe('run_xyz\tcanceled\t\nrun_new\tcanceled\t\n')
    expect(asked).toEqual(['run_xyz', 'run_new'])
  })
})

describe('status', () => {
  it('shows the files of a run that are on the disk: on a terminal, and as JSON', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    await service.run(`run image "a fox" -o ${path}`)
    const line = ['status', '--last']
    expect((await service.run(line, { tty: { stdout: true } })).stdout).toMatch(
      /^run_\w+ {2}succeeded {2}\/.*fox\.png\n$/,
    )
    expect((await service.run(line)).stdout).toMatch(/^run_\w+\tsucceeded\thttp:\/\/\S+\n$/)
    expect(JSON.parse((await service.run([...line, '--json'])).stdout)).toMatchObject({ files: [{ path }] })
    rmSync(path)
    expect((await service.run(line, { tty: { stdout: true } })).stdout).toMatch(/succeeded {2}http/)
  })
})

describe('a file', () => {
  it('names the run that wrote it last, even after it was deleted', async () => {
    const service = await createCliService()
    const folder = temporaryFolder()
    const path = join(folder, 'fox.png')
    await service.run(`run image "a hen" -o ${path}`)
    await service.run(`run image "a fox" -o ${path} --overwrite`)
    const [{ id = '' } = {}] = rowsOf(service.home)
    const shown = await service.run(['show', relative('.', path)])
    expect(shown.stdout).toMatch(new RegExp(`^run\t${id}\n`))
    rmSync(path)
    mkdirSync(path)
    expect((await service.run(`status ${path}`)).stdout).toMatch(new RegExp(`^${id}\tsucceeded\t`))
    rmSync(path, { recursive: true })
    const first = rowsOf(service.home)[1]?.id ?? ''
    await service.clock.advance(1_000)
    await service.run(`download ${first} -o ${path}`)
    expect((await service.run(`show ${path}`)).stdout).toMatch(new RegExp(`^run\t${first}\n`))
  })

  it('never names the run that has the same id at the current service', async () => {
    const home = temporaryFolder()
    const file = join(home, 'fox.png')
    const far = 'https://far.example.com'
    const made = { path: file, bytes: 1, sha256: 'x', url: 'x', content_type: 'image/png' }
    addRow(home, { id: '7', address: far }, (journal) => journal.files(far, '7', [made]))
    addRow(home, { id: '7' })
    const { fetch, asked } = createEchoService()
    for (const command of ['cancel', 'download']) {
      const { code, stderr } = await runCli(`${command} ${file}`, { home, env: SET, fetch })
      expect({ code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`7 was created at ${far}`),
      })
    }
    expect(asked).toEqual([])
  })
})
