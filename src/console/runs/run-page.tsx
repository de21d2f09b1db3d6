/** Page of one run: outputs, details, timeline, and the commands that create it again. */
import { useEffect, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { printable, withoutControls } from '../../protocol/text.js'
import { ApiError, request } from '../api.js'
import { LinkButton } from '../components/button.js'
import { CopyButton } from '../components/copy.js'
import { EmptyState, ErrorNotice, Notice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { findModel, useModels } from '../models.js'
import { linkTo, navigate } from '../routes.js'
import { isShortcut } from '../shortcuts.js'
import { useStore } from '../store.js'
import { feedStore, readFirstRuns } from './live-runs.js'
import { type Polling, PollingNotice, usePolling } from './polling.js'
import { Again } from './run-again.js'
import { progressText, RunFields, RunStatus, RunTimeline } from './run-details.js'
import { isFinished, neighboursOf } from './run-list.js'
import { RunOutputs } from './run-outputs.js'

export function RunPage({ id }: { readonly id: string }) {
  const [run, setRun] = useState<RunDetails>()
  const polling = usePolling(
    {
      async ask(signal) {
        const read = await request<RunDetails>('GET', CONSOLE_PATHS.run, { params: { id }, signal })
        setRun(read)
        return isFinished(read) ? 'done' : 'unfinished'
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
    <Page title="Run" width="wide" above={<RunNavigation id={id} />}>
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

/** Checks the code instead of status 404, which a proxy can also return. */
const isMissing = (error: unknown): boolean => error instanceof ApiError && error.code === 'run_not_found'

function Run({ run, polling }: { readonly run: RunDetails; readonly polling: Polling }) {
  const document = findModel(useModels().data, run.model)
  const prompt = typeof run.input?.prompt === 'string' ? run.input.prompt : run.prompt
  return (
    <Page
      title={run.kind === 'video' ? 'Video run' : 'Image run'}
      width="wide"
      above={<RunNavigation id={run.id} />}
      about={
        <span class="row">
          <RunStatus run={run} /> <code>{printable(run.id)}</code>
          <CopyButton kind="ghost" text={run.id} label="Copy the run id" />
        </span>
      }
      actions={
        <LinkButton kind="primary" icon="edit" href={linkTo('new', { query: { from: run.id } })}>
          Run again with changes
        </LinkButton>
      }
    >
      <PollingNotice {...polling} />
      <div class="run-layout">
        <div class="stack run-main">
          <Result run={run} prompt={prompt} />
          {prompt !== '' && (
            <Card title="Prompt" actions={<CopyButton kind="ghost" text={prompt} label="Copy the prompt" />}>
              <p class="run-full-prompt" dir="auto">
                {withoutControls(prompt)}
              </p>
            </Card>
          )}
          <Again run={run} document={document} />
        </div>
        <div class="stack run-side">
          <Card title="Details">
            <RunFields run={run} document={document} />
          </Card>
          <Card title="Timeline">
            <RunTimeline run={run} />
          </Card>
        </div>
      </div>
    </Page>
  )
}

/** Shows the outputs, the error, or the progress. */
function Result({ run, prompt }: { readonly run: RunDetails; readonly prompt: string }) {
  if (run.status === 'failed')
    return (
      <Notice
        tone="bad"
        title={`This run failed. Its price was ${run.error?.code === 'not_recorded' ? 'not ' : ''}refunded.`}
      >
        <p class="wrap" dir="auto">
          {withoutControls(run.error?.message ?? 'The service did not say why.')}
        </p>
        <p>
          {run.error !== null && run.error !== undefined && <code>{printable(run.error.code)}</code>}{' '}
          {adviceFor(run.error?.code)}
        </p>
      </Notice>
    )
  if (!isFinished(run))
    return (
      <div class="run-waiting" role="status">
        <span class="spinner" />
        <strong>{run.status === 'queued' ? 'Waiting in the queue' : `Rendering${progressText(run)}`}</strong>
        <span class="muted">This page shows the result when it is there.</span>
      </div>
    )
  if (run.outputs.length === 0)
    return <Notice tone="warn">This run succeeded, and the service has no files of it.</Notice>
  return <RunOutputs run={run} prompt={prompt} />
}

const ADVICE: Readonly<Record<string, string>> = {
  renderer_crashed:
    'The renderer crashed each time. Run it again with a smaller size or fewer images; the log of the service says more.',
  render_failed: 'Change what the message names, then run it again with changes.',
  not_recorded:
    'The render may have succeeded. Ask the administrator of the service, whose command "rushes admin verify" lists this run.',
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
