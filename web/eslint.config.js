import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

const UNSAFE = [
  {
    selector: "JSXAttribute[name.name='dangerouslySetInnerHTML'], Property[key.name='dangerouslySetInnerHTML']",
    message: "Texts come from agents and files: render them as text.",
  },
  {
    selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|srcdoc)$/]",
    message: "Texts come from agents and files: render them as text.",
  },
  { selector: "MemberExpression[object.name='document'][property.name=/^write(ln)?$/]", message: "Render with React." },
  {
    selector: "JSXOpeningElement[name.name='a'] > JSXAttribute[name.name='href'] > JSXExpressionContainer > :not(Literal):not(TemplateLiteral[quasis.0.value.raw=/^.[/]?/])",
    message: "A link never comes from data: use wouter's Link with a path of the console.",
  },
];

export default ts.config(
  { ignores: ["node_modules", "src/api/schema.d.ts"] },
  js.configs.recommended,
  ...ts.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] } } },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-restricted-syntax": ["error", ...UNSAFE],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    // A feature uses what is shared and the API; features never import each other.
    files: ["src/features/**"],
    rules: {
      "no-restricted-imports": [
        "error",
        { patterns: [{ regex: "^@/features/|^\\.\\./\\.\\./(?!\\.)", message: "Features do not import each other: move it to shared." }] },
      ],
    },
  },
  {
    // What panels use knows nothing of the component library.
    files: [
      "src/shared/diff/**",
      "src/shared/tree/**",
      "src/shared/Name.tsx",
      "src/shared/Time.tsx",
      "src/shared/VirtualList.tsx",
      "src/shared/reviews/{Counts,Statement}.tsx",
      "src/shared/reviews/{marks,words}.ts",
    ],
    rules: { "no-restricted-imports": ["error", { patterns: [{ group: ["@mantine/*"], message: "Panels carry no Mantine." }] }] },
  },
  {
    // A panel reaches the server through its host alone, so of the API it may know the types and nothing else.
    files: ["src/panel/**"],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        {
          patterns: [
            { group: ["@mantine/*", "@tabler/*", "@tanstack/react-query", "@/features/*", "@/app/*", "!@/app/base.css"], message: "Panels are of one small file." },
            { group: ["@/api/*"], message: "A panel has no network: it asks its host.", allowTypeImports: true },
          ],
        },
      ],
    },
  },
  { files: ["eslint.config.js"], ...ts.configs.disableTypeChecked },
);
