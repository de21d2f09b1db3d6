/** `rushes batch --watch`: what a round does, what begins the next one, and what ends them. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { asksForList, createCliService, type RunOptions, runCli, SET } from '../support/cli.js'
import type { ManualClock } from '../support/clock.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { bodyOf, objects } from '../support/family.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const WAITING = /^Watching .*$/m
const QUESTION = /^.*\[y\/N\] $/m
const NO_TERMINAL = {}
const TERMINAL = { tty: { stdin: true, stderr: true }, env: { TERM: 'dumb' }, columns: 200 }

/** What is done when the program says something new: the patterns are waited for one after the other. */
type Act = readonly [says: RegExp, act: (person: Person) => void]

interface Person {
  types(text: string): void
  pressesCtrlC(): void
}

const answers = (line: string): Act => [QUESTION, ({ types }) => types(`${line}\n`)]
const onceWaiting = (act: Act[1]): Act => [WAITING, act]
const says = (pattern: RegExp): Act => [pattern, () => {}]

const rowsOf = (prompts: Readonly<Record<string, string>>) =>
  `defaults: { kind: image }\nruns:\n${Object.entries(prompts)
    .map(([name, prompt]) => `  - { name: ${name}, prompt: ${prompt} }\n`)
    .join('')}`

async function createWatch(text = rowsOf({ fox: 'a fox', hen: 'a hen' })) {
  const service = await createCliService()
  const folder = temporaryFolder()
  const manifest = join(folder, 'shots.yaml')
  writeFileSync(manifest, text)
  const posts = () =>
    service.requests.filter(({ method }) => method === 'POST').map(({ body }) => bodyOf(body).input.prompt)
  return {
    service,
    folder,
    manifest,
    path: (name: string) => join(folder, name),
    write: (next: string) => writeFileSync(manifest, next),
    posts,
    /** Ends with Ctrl-C after the last act. */
    async watch(words: readonly string[], options: Omit<RunOptions, 'clock' | 'home'>, acts: readonly Act[]) {
      const stdin = new PassThrough()
      const interrupts = createInterrupts()
      const person: Person = {
        types: (line) => void stdin.write(line),
        pressesCtrlC: () => interrupts.interrupt('SIGINT'),
      }
      let at = 0
      let seen = 0
      const onStderr = (said: string) => {
        const [pattern, act] = acts[at] ?? [WAITING, person.pressesCtrlC]
        const found = pattern.exec(said.slice(seen))
        if (found === null) return
        seen += found.index + found[0].length
        at++
        // Not within the write of the program.
        setImmediate(() => act(person))
      }
      const ran = await service.run(['batch', manifest, '--watch', ...words], {
        stdin,
        interrupts,
        onStderr,
        ...options,
      })
      expect(at, ran.stderr).toBeGreaterThanOrEqual(acts.length)
      return {
        ...ran,
        said: ran.stderr.replaceAll(`${folder}/`, '').replace(/^\S+: (?!no such)\w+ \(.*\n/gm, ''),
      }
    },
  }
}

const POLL_MS = 500
const IDLE_POLLS = 5

/** Whenever the files have been asked for several times and none has changed. */
function whenIdle(clock: ManualClock, act: () => void): void {
  const { sleep } = clock
  let polls = 0
  clock.sleep = (ms, signal) => {
    polls = ms === POLL_MS ? polls + 1 : 0
    if (polls === IDLE_POLLS) setImmediate(act)
    return sleep(ms, signal)
  }
}

describe('--watch', () => {
  it('asks, creates, and asks again for what an edit changes', async () => {
    const { watch, write, posts } = await createWatch()
    const { code, stdout, said } = await watch([], TERMINAL, [
      answers('y'),
      onceWaiting(() => write(rowsOf({ fox: 'a red fox', hen: 'a hen' }))),
      answers('y'),
    ])
    expect(code).toBe(130)
    expect(posts()).toEqual(['a fox', 'a hen', 'a red fox'])
    expect(stdout.match(/\.png$/gm)).toHaveLength(3)
    expect(said).toMatch(/^create {2}fox {2}fox\.png {2}never created$/m)
    expect(said).toMatch(/^Create 2 runs\? \[y\/N\] /m)
    expect(said).toMatch(/^2 runs: 2 created \(\d+ s\)\. No estimate: 2 runs without a price$/m)
    expect(said).toMatch(
      /shots\.yaml changed\ncreate {2}fox {2}fox\.png {2}prompt changed\n2 runs: 1 up to date, 1 to create; .* No estimate: 1 run without a price\nCreate 1 run\? \[y\/N\] /,
    )
    expect(said).not.toMatch(/up_to_date|up to date +hen/)
    expect(said).toMatch(/\nStopped watching\. No run was being created\.\n$/)
  })

  it('creates nothing after "n", and asks again after the next change', async () => {
    const { watch, write, posts } = await createWatch()
    const { code, said } = await watch([], TERMINAL, [
      answers('n'),
      onceWaiting(() => write(rowsOf({ hen: 'a hen' }))),
      answers(''),
    ])
    expect({ code, posts: posts() }).toEqual({ code: 130, posts: [] })
    expect(said.match(/Nothing was created\./g)).toHaveLength(2)
  })

  it('asks again for creates that were agreed to, if a later question was answered with "n"', async () => {
    const fox = rowsOf({ fox: 'a fox' })
    const { watch, write, posts } = await createWatch(fox)
    const { said } = await watch([], TERMINAL, [
      // The manifest changes while the question is open, so the answer creates nothing.
      [
        QUESTION,
        ({ types }) => {
          write(rowsOf({ fox: 'a fox', hen: 'a hen' }))
          types('y\n')
        },
      ],
      answers('n'),
      onceWaiting(() => write(fox)),
      [/\[y\/N\] $|^Watching /m, ({ pressesCtrlC }) => pressesCtrlC()],
    ])
    expect(posts()).toEqual([])
    expect(said.match(/\[y\/N\] /g)).toHaveLength(3)
  })

  it('drops what is typed while no question is open', async () => {
    const { watch, write, posts } = await createWatch(rowsOf({ fox: 'a fox' }))
    const { said } = await watch([], TERMINAL, [
      answers('y'),
      onceWaiting(({ types }) => {
        types('y\ny\n')
        write(rowsOf({ fox: 'a red fox' }))
      }),
      answers('n'),
    ])
    expect(posts()).toEqual(['a fox'])
    expect(said).toMatch(/Nothing was created\./)
  })

  it('plans again when the manifest changes while it asks: nothing is paid that was not shown', async () => {
    const { watch, write, posts } = await createWatch(rowsOf({ fox: 'a fox' }))
    await watch([], TERMINAL, [
      [
        QUESTION,
        ({ types }) => {
          write(rowsOf({ fox: 'a red fox' }))
          types('y\n')
        },
      ],
      says(/shots\.yaml changed$/m),
      answers('y'),
    ])
    expect(posts()).toEqual(['a red fox'])
  })

  it('ends at a question that nobody can answer any more', async () => {
    const { watch, posts } = await createWatch()
    const { code, stderr } = await watch([], { ...TERMINAL, stdin: '' }, [])
    expect({ code, posts: posts() }).toEqual({ code: 0, posts: [] })
    expect(stderr).toMatch(/Standard input has ended\. Stopped watching\.\n$/)
  })

  it('ends when the input ends while it waits', async () => {
    const { watch, posts } = await createWatch()
    const stdin = new PassThrough()
    const { code, stderr } = await watch([], { ...TERMINAL, stdin }, [
      [QUESTION, () => void stdin.write('n\n')],
      onceWaiting(() => void stdin.end()),
    ])
    expect({ code, posts: posts() }).toEqual({ code: 0, posts: [] })
    expect(stderr).toMatch(/Stopped watching\.\n$/)
  })

  it('downloads without a question', async () => {
    const { watch, write, posts, path, folder } = await createWatch()
    await watch([], TERMINAL, [
      answers('y'),
      onceWaiting(() => {
        rmSync(path('hen.png'))
        write(rowsOf({ hen: 'a hen' }))
      }),
    ])
    expect(posts()).toEqual(['a fox', 'a hen'])
    expect(readdirSync(folder)).toContain('hen.png')
  })

  it('--yes creates without asking, with JSON as usual: one summary for each round', async () => {
    const { watch, write, posts, service, folder } = await createWatch(rowsOf({ fox: 'a fox' }))
    const interrupts = createInterrupts()
    const edits = [rowsOf({ fox: 'a red fox' }), `# a comment\n${rowsOf({ fox: 'a red fox' })}`]
    whenIdle(service.clock, () => {
      const edit = edits.shift()
      if (edit === undefined) interrupts.interrupt('SIGINT')
      else write(edit)
    })
    const { code, stdout, stderr } = await watch(['--yes', '--json'], { interrupts }, [])
    expect(code).toBe(130)
    expect(posts()).toEqual(['a fox', 'a red fox'])
    expect(
      objects(stdout).map((line) => (line.summary === undefined ? line.result : line.summary)),
    ).toMatchObject(['created', { created: 1 }, 'created', { created: 1 }, { up_to_date: 1 }])
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'interrupted', exit_code: 130 } })
    expect(readdirSync(folder).filter((name) => name.includes('claim'))).toEqual([])
  })
})

describe('what --watch notices', () => {
  it('a local image that changes, is missing and comes back; new ones too', async () => {
    const row = (image: string) =>
      `defaults: { kind: image }\nruns:\n  - { name: fox, prompt: a fox, image_urls: [${image}] }\n`
    const { watch, write, posts, path } = await createWatch(row('refs/style.png'))
    mkdirSync(path('refs'))
    const style = (bytes: string, name = 'refs/style.png') =>
      writeFileSync(path(name), Buffer.concat([ONE_PIXEL_PNG, Buffer.from(bytes)]))
    style('1')
    const { said } = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => style('2')),
      says(/refs\/style\.png changed\n(.*\n)*?create .* image_urls changed/),
      onceWaiting(() => write(row('refs/other.png'))),
      says(/shots\.yaml:3:\d+: refs\/other\.png: no such file\n/),
      onceWaiting(() => style('3', 'refs/other.png')),
      says(/refs\/other\.png changed/),
      onceWaiting(() => style('4', 'refs/other.png')),
    ])
    expect(said).toMatch(/Watching shots\.yaml and 1 image for changes\. Press Ctrl-C to stop\./)
    expect(posts()).toHaveLength(4)
  })

  it.each<[string, (paths: { readonly manifest: string; readonly text: string }) => void]>([
    [
      'written aside and renamed',
      ({ manifest, text }) => {
        writeFileSync(`${manifest}~new`, text)
        renameSync(`${manifest}~new`, manifest)
      },
    ],
    [
      'moved away first, with an old time',
      ({ manifest, text }) => {
        renameSync(manifest, `${manifest}~`)
        setImmediate(() => {
          writeFileSync(`${manifest}~new`, text)
          utimesSync(`${manifest}~new`, 1, 1)
          renameSync(`${manifest}~new`, manifest)
        })
      },
    ],
  ])('a save that is %s', async (_, save) => {
    const { watch, manifest, posts } = await createWatch(rowsOf({ fox: 'a fox' }))
    const { said } = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => save({ manifest, text: rowsOf({ fox: 'a red fox' }) })),
    ])
    expect(posts()).toEqual(['a fox', 'a red fox'])
    expect(said).not.toMatch(/no such file/)
  })

  it('several saves within a moment once, and those during a round after it', async () => {
    const { watch, write, posts, service } = await createWatch(rowsOf({ fox: 'a fox' }))
    const fetch: Fetch = (request) => {
      const isSecond = posts().length === 1
      const answer = service.counting(request)
      if (request.method === 'POST' && isSecond) write(rowsOf({ fox: 'a blue fox' }))
      return answer
    }
    const { said } = await watch(['--yes'], { fetch }, [
      onceWaiting(() => {
        write('')
        write(rowsOf({ fox: 'a gr' }))
        setImmediate(() => write(rowsOf({ fox: 'a red fox' })))
      }),
      onceWaiting(() => {}),
    ])
    expect(posts()).toEqual(['a fox', 'a red fox', 'a blue fox'])
    expect(said).not.toMatch(/problem/)
  })
})

describe('mistakes while editing', () => {
  it('name their line and column, and watching continues', async () => {
    const { watch, write, posts } = await createWatch(rowsOf({ fox: 'a fox' }))
    const wrong = `${rowsOf({ fox: 'a fox' })}  - { name: hen, promt: a hen }\n`
    const { code, said } = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => write(wrong)),
      onceWaiting(() => write(rowsOf({ fox: 'a fox', hen: 'a hen' }))),
    ])
    expect(code).toBe(130)
    expect(posts()).toEqual(['a fox', 'a hen'])
    expect(said.match(/shots\.yaml:4:\d+: .*"promt"/g)).toHaveLength(1)
    expect(said.match(/The manifest shots\.yaml has/g)).toHaveLength(1)
  })

  it('a manifest that is away for longer is named, and waited for', async () => {
    const { watch, manifest, posts } = await createWatch(rowsOf({ fox: 'a fox' }))
    const { said } = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => renameSync(manifest, `${manifest}~`)),
      says(/shots\.yaml: no such file/),
      onceWaiting(() => writeFileSync(manifest, rowsOf({ fox: 'a red fox' }))),
    ])
    expect(posts()).toEqual(['a fox', 'a red fox'])
    expect(said.match(/no such file/g)).toHaveLength(1)
  })

  it('more runs than --max-runs, and a file in the way, are said; each round is counted by itself', async () => {
    const { watch, write, posts, path } = await createWatch(rowsOf({ fox: 'a fox' }))
    const { said } = await watch(['--yes', '--max-runs', '1'], NO_TERMINAL, [
      onceWaiting(() => write(rowsOf({ fox: 'a red fox', hen: 'a hen' }))),
      says(/but --max-runs allows 1/),
      onceWaiting(() => write(rowsOf({ fox: 'a red fox' }))),
      onceWaiting(() => {
        writeFileSync(path('owl.png'), 'mine')
        write(rowsOf({ fox: 'a red fox', owl: 'an owl' }))
      }),
    ])
    expect(posts()).toEqual(['a fox', 'a red fox'])
    expect(said).toMatch(/1 output file exists already/)
    expect(readFileSync(path('owl.png'), 'utf8')).toBe('mine')
  })
})

describe('the rounds of --watch', () => {
  it('--force is for the first one alone', async () => {
    const { watch, write, posts } = await createWatch()
    await watch(['--yes', '--force'], NO_TERMINAL, [
      onceWaiting(() => write(rowsOf({ fox: 'a fox', hen: 'a red hen' }))),
    ])
    expect(posts()).toEqual(['a fox', 'a hen', 'a red hen'])
  })

  it('leave the manifest to another batch between them, and wait for one that runs', async () => {
    const { watch, write, posts, service, path } = await createWatch(rowsOf({ fox: 'a fox' }))
    const claim = path('.shots.lock.json.claim')
    const { said } = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => {
        const holder = { host: 'other', process: 1, token: 'x', since: 'x' }
        writeFileSync(claim, JSON.stringify({ ...holder, heartbeat: new Date(0).toISOString() }))
        write(rowsOf({ fox: 'a red fox' }))
        // Its holder is alive: the text changes, until the claim is gone.
        const { sleep } = service.clock
        let beats = 0
        service.clock.sleep = (ms, signal) => {
          const heartbeat = new Date(++beats).toISOString()
          if (ms === 250) writeFileSync(claim, JSON.stringify({ ...holder, heartbeat }))
          if (ms === 1_000) rmSync(claim, { force: true })
          return sleep(ms, signal)
        }
      }),
      says(/Another batch is running on this manifest\. Waiting until it ends\./),
    ])
    expect(posts()).toEqual(['a fox', 'a red fox'])
    expect(said).not.toMatch(/error: Another/)
  })

  it('use the API key that was found for the first one', async () => {
    const { watch, write, path, posts, service } = await createWatch(rowsOf({ fox: 'a fox' }))
    const source = path('key')
    const change = onceWaiting(() => write(rowsOf({ fox: 'a fox', hen: 'a hen' })))
    // A pipe gives its line once, as the file does that is removed with it.
    writeFileSync(source, service.apiKey, { mode: 0o600 })
    const RUSHES_API_KEY_COMMAND = `cat '${source}'; rm '${source}'`
    const env = { RUSHES_API_KEY: '', RUSHES_API_KEY_COMMAND }
    expect(await watch(['--yes'], { env }, [change])).toMatchObject({ code: 130 })
    expect(posts()).toEqual(['a fox', 'a hen'])
  })

  it('end with a refused key, and with a damaged lock file', async () => {
    const { watch, write, path } = await createWatch()
    const refused = await watch(['--yes'], { env: { RUSHES_API_KEY: 'rk_wrong' } }, [])
    expect(refused.code).toBe(4)
    expect(refused.said).toMatch(/Stopped watching because of this error\.\n$/)
    const damaged = await watch(['--yes'], NO_TERMINAL, [
      onceWaiting(() => {
        writeFileSync(path('shots.lock.json'), '{')
        write(rowsOf({ fox: 'a blue fox' }))
      }),
    ])
    expect(damaged.code).toBe(2)
  })

  it('go on after a failed row', async () => {
    const { watch, write, posts, service } = await createWatch(rowsOf({ fox: 'a fox' }))
    let isBroken = true
    const fetch: Fetch = (request) =>
      isBroken && request.method === 'POST'
        ? service.fetch({ ...request, body: Buffer.from('{"model":"rushes/preview-image","input":{}}') })
        : service.counting(request)
    const { code } = await watch(['--yes'], { fetch }, [
      onceWaiting(() => {
        isBroken = false
        write(rowsOf({ fox: 'a red fox' }))
      }),
    ])
    expect({ code, posts: posts() }).toEqual({ code: 130, posts: ['a red fox'] })
  })

  it('Ctrl-C in the middle of one is that of a batch', async () => {
    const { watch, service } = await createWatch()
    const interrupts = createInterrupts()
    const fetch: Fetch = async (request) => {
      const answer = await service.counting(request)
      if (request.method === 'GET' && !asksForList(request)) interrupts.interrupt('SIGINT')
      return answer
    }
    const { code, stderr } = await watch(['--yes'], { fetch, interrupts }, [])
    expect(code).toBe(130)
    expect(stderr).toMatch(/Interrupted\. Created runs continue on the service\./)
    expect(stderr).toMatch(/`rushes batch --watch --yes .*shots\.yaml`/)
  })
})

describe('--watch --dry-run', () => {
  it('prints the plan after each change, and never pays', async () => {
    const { watch, write, posts } = await createWatch()
    const { code, stdout, said } = await watch(['--dry-run'], NO_TERMINAL, [
      onceWaiting(() => write(rowsOf({ fox: 'a fox' }))),
    ])
    expect({ code, posts: posts() }).toEqual({ code: 130, posts: [] })
    expect(stdout).toBe(
      'create\tfox\tfox.{ext}\tmissing\ncreate\then\then.{ext}\tmissing\ncreate\tfox\tfox.{ext}\tmissing\n',
    )
    expect(said).toMatch(/^1 run: 1 to create/m)
  })
})

describe('--watch refuses', () => {
  it.each([
    [['shots.yaml'], /which needs a terminal/],
    [['shots.yaml', '--json'], /which needs a terminal/],
    [['shots.yaml', '--check'], /--check and --watch cannot be used together/],
    [['-', '--yes'], /--watch needs a manifest file/],
    [['none.yaml', '--yes'], /none\.yaml: no such file/],
    [['shots.yaml', '--yes', '--only', 'nobody'], /--only nobody does not match/],
  ])('%j', async (words, message) => {
    const [word = '', ...flags] = words
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'shots.yaml'), rowsOf({ fox: 'a fox' }))
    const path = word === '-' ? word : join(folder, word)
    const { code, stderr } = await runCli(['batch', path, '--watch', ...flags], { env: SET })
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })
})
