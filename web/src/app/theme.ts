/** The visual language: system fonts, a grid of 4, one blue accent; green and red mean added and removed, nothing else. */
import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const accent: MantineColorsTuple = [
  "#eef4fd", "#d8e6fa", "#b3cef4", "#8bb4ee", "#699fe9", "#4b8be2", "#2f74d3", "#1d5fbf", "#174f9f", "#123f80",
];
const dark: MantineColorsTuple = [
  "#e4e7eb", "#c3c9d0", "#9aa4af", "#6f7985", "#3a424c", "#2d333b", "#22272e", "#1a1e23", "#14171b", "#0e1013",
];
const gray: MantineColorsTuple = [
  "#f6f7f9", "#eef0f3", "#e3e7eb", "#d3d8de", "#b6bec7", "#8b95a1", "#66717d", "#57606a", "#363d46", "#1b1f24",
];

export const theme = createTheme({
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 6 },
  colors: { accent, dark, gray },
  white: "#ffffff",
  black: "#1b1f24",
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  lineHeights: { xs: "16px", sm: "20px", md: "20px", lg: "24px", xl: "28px" },
  spacing: { xs: "4px", sm: "8px", md: "12px", lg: "16px", xl: "24px" },
  radius: { xs: "4px", sm: "6px", md: "6px", lg: "8px", xl: "12px" },
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "20px", lineHeight: "28px" }, h2: { fontSize: "16px", lineHeight: "24px" }, h3: { fontSize: "14px", lineHeight: "20px" } } },
  components: {
    Button: { defaultProps: { size: "xs" } },
    Modal: { defaultProps: { transitionProps: { duration: 100 }, centered: false } },
    Menu: { defaultProps: { transitionProps: { duration: 80 } } },
    Tooltip: { defaultProps: { transitionProps: { duration: 80 }, openDelay: 300 } },
  },
});

export const variables: CSSVariablesResolver = () => ({
  variables: { "--hf-mono": theme.fontFamilyMonospace ?? "monospace" },
  light: { "--mantine-color-dimmed": "#57606a", "--mantine-color-error": "#7a4d0b", "--mantine-color-default-border": "#d3d8de", "--mantine-color-placeholder": "#66717d" },
  dark: { "--mantine-color-dimmed": "#9aa4af", "--mantine-color-error": "#f0c67a", "--mantine-color-default-border": "#3a424c", "--mantine-color-placeholder": "#8b95a1", "--mantine-color-body": "#14171b" },
});
