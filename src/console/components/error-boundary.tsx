import { Component, type ComponentChildren } from 'preact'
import { Button } from './button.js'
import { CodeBlock } from './copy.js'
import { Notice } from './notice.js'

export interface ErrorBoundaryProps {
  readonly children: ComponentChildren
  /** The data that could not be shown. */
  readonly data: () => unknown
}

/** Shows what went wrong, and the data itself, where drawing failed. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly error: unknown }> {
  override state = { error: undefined as unknown }

  static override getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render({ children, data }: ErrorBoundaryProps) {
    const { error } = this.state
    if (error === undefined) return children
    const retry = (
      <Button size="small" icon="rotate" onClick={() => this.setState({ error: undefined })}>
        Try again
      </Button>
    )
    const shown = data()
    return (
      <div class="page page-normal">
        <Notice tone="bad" title="This could not be shown." action={retry}>
          {error instanceof Error ? error.message : String(error)}
        </Notice>
        {shown !== undefined && (
          <details class="raw" open>
            <summary>The data of the service, as JSON</summary>
            <CodeBlock code={JSON.stringify(shown, null, 2)} label="JSON" />
          </details>
        )}
      </div>
    )
  }
}
