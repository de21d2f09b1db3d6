/** Page of one run: outputs, reference images, details, and the commands that create it again. */
import { useEffect, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { printable, shortened, withoutControls } from '../../protocol/text.js'
import { hasCode, refreshSession, request } from '../api.js'
import { LinkButton } from '../components/button.js'
import { CopyButton } from '../components/copy.js'
import { EmptyState, ErrorNotice, Notice, PollingNotice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { capitalized } from '../format.js'
import { findModel, useModels } from '../model-documents.js'
import { type Polling, usePolling } from '../polling.js'
import { linkTo, navigate } from '../routes.js'
import { isShortcut } from '../shortcuts.js'
import { useStore } from '../store.js'
import { CancelRun } from './cancel-run.js'
import { feedStore, readFirstRuns } from './live-runs.js'
import { Again } from './run-again.js'
import { RunDetailsCard, RunStatus, WaitingRun } from './run-details.js'
import { isFinished, neighboursOf } from './run-list.js'
import { RunOutputs } from './run-outputs.js'
import { RunReferences } from './run-references.js'

export function RunPage({ id }: { readonly id: string }) {
  const [run, setRun] = useState<RunDetails>()
  const polling = usePolling(
    {
      async ask(signal) {
        const read = await request<RunDetails>('GET', CONSOLE_PATHS.run, { params: { id }, signal })
        // A failed run was refunded, and a canceled run may have been.
        if (run !== undefined && !isSettled(run) && isSettled(read) && read.status !== 'succeeded')
          refreshSession().catch(() => undefined)
        setRun(read)
        return isSettled(read) ? 'done' : 'unfinished'
      },
      // A run that was shown exists, so retry after a 404.
      isFinal: (error) => run === undefined && isMissing(error),
    },
    [id],
  )
  useEffect(() => scrollTo({ top: 0, behavior: 'instant' }), [id])

  if (run !== undefined) return <Run run={run} polling={polling} />
  const { error, retry } = polling
  return (
    <Page title="Run" above={<RunNavigation id={id} />}>
      {isMissing(error) ? (
        <EmptyState
          icon="search"
          title="No such run"
          action={<LinkButton href={linkTo('runs')}>Go to Runs</LinkButton>}
        >
          This account has no run <code>{printable(id)}</code>. Check the id, or sign in to the account that
          created it.
        </EmptyState>
      ) : error === undefined ? (
        <SkeletonLines />
      ) : (
        <ErrorNotice error={error} onRetry={retry} />
      )}
    </Page>
  )
}

/** Whether the run no longer changes. The refund of a canceled run is decided when its engine has stopped. */
const isSettled = (run: RunDetails): boolean => isFinished(run) && run.error?.code !== 'canceling'

const isMissing = (error: unknown): boolean => hasCode(error, 'run_not_found')

function Run({ run, polling }: { readonly run: RunDetails; readonly polling: Polling }) {
  const document = findModel(useModels().data, run.model)
  const prompt = typeof run.input?.prompt === 'string' ? run.input.prompt : run.prompt
  const kind = capitalized(run.kind)
  return (
    <Page
      title={shortened(printable(prompt).trim(), MAX_TITLE) || `${kind} run`}
      above={<RunNavigation id={run.id} />}
      about={
        <span class="row run-about-row">
          <RunStatus run={{ ...run, progress: null, queue_position: null }} />
          <span>
            {kind} ·{' '}
            <a href={linkTo('runs', { query: { model: run.model } })} title="Runs of this model">
              <bdi>{printable(run.model)}</bdi>
            </a>
          </span>
          <span class="row run-id">
            <code>{printable(run.id)}</code>
            <CopyButton kind="ghost" text={run.id} label="Copy the run id" />
          </span>
        </span>
      }
      actions={
        <>
          {prompt !== '' && (
            <CopyButton text={prompt} size="normal">
              Copy prompt
            </CopyButton>
          )}
          {!isFinished(run) && <CancelRun run={run} onDone={polling.retry} />}
          <LinkButton kind="primary" icon="edit" href={linkTo('new', { query: { from: run.id } })}>
            Run again with changes
          </LinkButton>
        </>
      }
    >
      <PollingNotice {...polling} />
      <div class="run-layout">
        <div class="stack run-main">
          <Result run={run} prompt={prompt} />
          {!fitsTitle(prompt) && (
            <Card title="Prompt">
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard */}
              <section class="run-full-prompt" tabIndex={0} aria-label="Prompt" dir="auto">
                {withoutControls(prompt)}
              </section>
            </Card>
          )}
          <Again run={run} document={document} />
        </div>
        <div class="stack run-side">
          <RunReferences run={run} />
          <RunDetailsCard run={run} document={document} />
        </div>
      </div>
    </Page>
  )
}

/** Maximum length of the title. The page's title is also the name of the browser's tab. */
const MAX_TITLE = 140
/** A longer prompt has a card, and its title is cut to two lines. */
const MAX_WHOLE_TITLE = 60

const fitsTitle = (prompt: string): boolean => prompt.length <= MAX_WHOLE_TITLE && !/\n./.test(prompt)

/** Shows the outputs, the error, or the progress. */
function Result({ run, prompt }: { readonly run: RunDetails; readonly prompt: string }) {
  if (run.status === 'failed')
    return (
      <Notice tone="bad" title="This run failed.">
        <p class="wrap" dir="auto">
          {withoutControls(run.error?.message ?? 'The service did not say why.')}
        </p>
        <p>
          {run.error !== null && run.error !== undefined && <code>{printable(run.error.code)}</code>}{' '}
          {adviceFor(run.error?.code)}
        </p>
      </Notice>
    )
  if (run.status === 'canceled')
    return <Notice tone="warn">{withoutControls(run.error?.message ?? 'The run was canceled.')}</Notice>
  if (!isFinished(run)) return <WaitingRun run={run} />
  if (run.outputs.length === 0)
    return <Notice tone="warn">This run succeeded, and the service has no files of it.</Notice>
  return <RunOutputs run={run} prompt={prompt} />
}

const ADVICE: Readonly<Record<string, string>> = {
  renderer_crashed:
    'The renderer crashed each time. Run it again with a smaller size or fewer images; the log of the service says more.',
  render_failed: 'Fix the cause, then run again.',
  provider_refused:
    'Ask the administrator of the service: its provider refused the key or the account. The input is not the reason.',
  outcome_unknown:
    'Ask the administrator of the service, who can look for the result at the provider, or refund the run.',
  not_recorded:
    'The render may have succeeded, but its files were not kept. Run it again. ' +
    'If it fails again, ask the administrator of the service.',
}

const adviceFor = (code: string | undefined): string =>
  (code !== undefined && Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined) ??
  'Run it again with changes. If it fails again, ask the administrator of the service.'

/** Links to the list, the newer run and the older run. */
function RunNavigation({ id }: { readonly id: string }) {
  const feed = useStore(feedStore)
  const { newer, older } = neighboursOf(feed?.list.runs ?? [], id)
  useEffect(() => {
    const controller = new AbortController()
    readFirstRuns(controller.signal).catch(() => undefined)
    return () => controller.abort()
  }, [])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return
      const target = event.key === 'k' ? newer : event.key === 'j' ? older : undefined
      if (target !== undefined) navigate(linkTo('runs', { param: target }))
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [newer, older])
  const link = (target: string | undefined, label: string, direction: string) =>
    target !== undefined && (
      <LinkButton
        kind="ghost"
        size="small"
        icon="next"
        class={direction}
        label={label}
        href={linkTo('runs', { param: target })}
      />
    )
  return (
    <nav class="run-navigation" aria-label="Runs">
      <a class="back-link" href={linkTo('runs', { query: { ...feed?.filters } })}>
        All runs
      </a>
      <span class="run-neighbours">
        {link(newer, 'Newer run (k)', 'is-flipped')}
        {link(older, 'Older run (j)', '')}
      </span>
    </nav>
  )
}
