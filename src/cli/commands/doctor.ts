/** `rushes doctor`: checks settings, models, network, key, disk and journal. It changes nothing and costs nothing. */
import { join } from 'node:path'
import type { Command } from 'commander'
import { KINDS } from '../../protocol/models.js'
import { onOneLine, printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import {
  checkAddress,
  checkConfig,
  checkDisk,
  checkJournal,
  checkLocalService,
  checkModel,
  checkProxy,
  checkStateFolder,
  quarantinedFilesIn,
} from '../doctor/check-machine.js'
import { checkConnection, checkKey, checkName } from '../doctor/check-service.js'
import { type Finding, ok, skipped } from '../doctor/finding.js'
import { exitCodeOf } from '../process/exit.js'
import { VERSION } from '../process/version.js'
import { wrapWords } from '../terminal/format.js'

export function register(command: Command, { run }: CommandEnvironment, examine = doctorCommand): void {
  command
    .option(
      '--models [path]',
      'Check only the model servers of this file or folder (default: local.models, else those on this machine)',
    )
    .action((options: DoctorOptions) =>
      run(command, (ctx) => examine(ctx, options), { reportsAddress: true }),
    )
}

export interface DoctorOptions {
  /** True without a path. */
  readonly models?: string | true
}

/** Prints each finding as soon as its check is done. */
export async function doctorCommand(ctx: Context, { models }: DoctorOptions = {}): Promise<number> {
  const found: Finding[] = []
  const report = (...findings: readonly Finding[]) => {
    found.push(...findings)
    for (const finding of findings) print(ctx, finding)
  }
  if (models !== undefined) {
    const { checkModels } = await import('../doctor/check-models.js')
    report(...(await checkModels(ctx, models === true ? undefined : models)))
    return exitCodeFor(found)
  }
  report(ok('version', `rushes ${VERSION}, Node ${process.versions.node}`))
  const config = await checkConfig(ctx)
  report(config)
  const isReadable = config.status !== 'failed'
  if (isReadable && !ctx.globals.local) await examineService(ctx, report)
  else {
    const reason = ctx.globals.local ? 'not needed with --local' : 'the settings cannot be read'
    report(...['service URL', 'connection', 'key'].map((each) => skipped(each, reason)))
  }
  if (isReadable) for (const kind of KINDS) report(await checkModel(ctx, kind))
  report(checkStateFolder(ctx.stateFolder))
  report(checkDisk('disk', '.'), checkDisk('state disk', ctx.stateFolder))
  if (ctx.globals.local) report(checkLocalService(join(ctx.stateFolder, 'local', 'service.db')))
  report(...quarantinedFilesIn(ctx.stateFolder), ...(await checkJournal(ctx)))
  return exitCodeFor(found)
}

const exitCodeFor = (found: readonly Finding[]): number =>
  exitCodeOf(found.flatMap(({ exitCode }) => (exitCode === undefined ? [] : [{ exitCode }])))

async function examineService(
  ctx: Context,
  report: (...findings: readonly Finding[]) => void,
): Promise<void> {
  const { finding, url } = await checkAddress(ctx)
  report(finding)
  const skip = (reason: string, ...checks: readonly string[]) =>
    report(...[...checks, 'dns', 'connection', 'clock', 'key'].map((each) => skipped(each, reason)))
  if (url === undefined) return skip('no service URL', 'proxy')
  const proxy = checkProxy(url, ctx.env)
  report(proxy.finding)
  if (proxy.finding.status === 'failed') return skip('the proxy setting is invalid')
  report(await checkName(url, proxy.isUsed))
  const { findings, isReached } = await checkConnection(ctx, url, proxy.isUsed)
  report(...findings)
  report(isReached ? await checkKey(ctx) : skipped('key', 'the service was not reached'))
}

const LABELS = { ok: 'ok', warning: 'warning', failed: 'failed', skipped: '-' } as const

function print({ out }: Context, { check, status, message, advice }: Finding): void {
  if (out.mode.json) {
    out.json({ check, status, message, advice: advice === undefined ? null : onOneLine(advice) })
    return
  }
  const { green, yellow, red, dim } = out.style.out
  const colour = { ok: green, warning: yellow, failed: red, skipped: dim }[status]
  const indent = ' '.repeat(22)
  const wrapped = (text: string) =>
    out.stdoutIsTerminal ? wrapWords(text, (out.columns ?? 80) - indent.length) : [text]
  const [first = '', ...more] = wrapped(printable(message))
  out.line(`${colour(LABELS[status].padEnd(8))}${check.padEnd(13)} ${first}`)
  const advised = (advice?.split('\n') ?? []).flatMap((line) => wrapped(printable(line.trim())))
  for (const line of [...more, ...advised]) out.line(`${indent}${line}`)
}
