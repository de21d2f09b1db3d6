/** docs/github-actions.md: its tables are complete, and its workflow does what it says, with git around the action. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { BINARY, bash, createPlace, rushes } from './support/binary.js'
import { ACTION, ACTION_FOLDER, createRunner, fakeNpm } from './support/github-action.js'

const TEXT = readFileSync(join(ACTION_FOLDER, 'docs/github-actions.md'), 'utf8')
const [, workflow = ''] = /```yaml\n(.*?)```/s.exec(TEXT) ?? []
const [, ignored = ''] = /```\n# \.gitignore\n(.*?)```/s.exec(TEXT) ?? []

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}
const { jobs } = parse(workflow)
const stepsOf = (name: string): readonly Step[] => jobs[name].steps

describe('docs/github-actions.md', () => {
  it.each([
    ['Inputs', ACTION.inputs],
    ['Outputs', ACTION.outputs],
  ])('lists the %s in the order of action.yml', (title, values) => {
    const section = TEXT.split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
    expect([...section.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name).sort()).toEqual(
      Object.keys(values).sort(),
    )
  })

  it('shows the defaults of action.yml', () => {
    for (const [name, { default: value }] of Object.entries(ACTION.inputs))
      if (value && name !== 'working-directory')
        expect(TEXT).toMatch(new RegExp(`^\\| \`${name}\` \\|.*\\| \`${value}\` \\|$`, 'm'))
  })

  it('uses existing inputs and outputs, and the current version', () => {
    const { version } = JSON.parse(readFileSync(join(ACTION_FOLDER, 'package.json'), 'utf8'))
    for (const job of ['check', 'create'])
      for (const { uses = '', with: given = {} } of stepsOf(job)) {
        if (!uses.startsWith('OWNER/')) continue
        expect(uses).toBe(`OWNER/rushes@v${version}`)
        expect(Object.keys(ACTION.inputs)).toEqual(expect.arrayContaining(Object.keys(given)))
      }
    for (const [, name] of workflow.matchAll(/steps\.assets\.outputs\.([\w-]+)/g))
      expect(Object.keys(ACTION.outputs)).toContain(name)
  })

  it('commits the outputs of the action, so that the check passes', async () => {
    const npm = fakeNpm(createPlace(), BINARY)
    const { place } = npm
    const git = `git init -q --bare -b main "$HOME/remote" && git init -q -b main . && git remote add origin "$HOME/remote" &&
      git add -A && git -c user.name=a -c user.email=a@b.c commit -qm first && git push -q -u origin main`
    writeFileSync(join(place.folder, '.gitignore'), ignored)
    writeFileSync(
      join(place.folder, 'rushes.yaml'),
      'runs: [{ name: fox, kind: image, prompt: a fox, output: assets/fox.png }]\n',
    )
    expect(await bash(place, git)).toMatchObject({ code: 0 })
    const runner = createRunner(place)
    expect(await runner.job({ local: 'true' })).toMatchObject({ failed: false, outputs: { created: '1' } })
    const commit = stepsOf('create').find(({ run }) => run !== undefined)?.run ?? ''
    const committed = await bash(place, `set -e\n${commit}\ngit show --name-only --format=%s origin/main`)
    expect(committed).toMatchObject({ code: 0 })
    expect(committed.stdout).toMatch(/Create assets\n\nassets\/fox\.png\nrushes\.lock\.json\n$/)
    // Nothing to commit is no error.
    expect(await bash(place, `set -e\n${commit}`)).toMatchObject({ code: 0 })
    await bash(place, 'git clone -q "$HOME/remote" clone')
    const clone = { ...place, folder: join(place.folder, 'clone') }
    expect(await rushes(clone, ['batch', 'rushes.yaml', '--check'])).toMatchObject({ code: 0 })
  })
})
